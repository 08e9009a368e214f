/* FMI 2.0 co-simulation unit of a compiled step of livens: the functions of FMI 2.0 call those of FMI 3.0, whose states
   and status codes are the same. */
#include "fmi3.c"

typedef void *fmi2Component;
typedef void *fmi2FMUstate;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef unsigned int fmi2ValueReference;
typedef int fmi2Status;
enum { fmi2ModelExchange, fmi2CoSimulation };
typedef struct {
  void (*logger)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
  void *(*allocateMemory)(size_t, size_t);
  void (*freeMemory)(void *);
  void (*stepFinished)(void *, fmi2Status);
  void *componentEnvironment;
} fmi2CallbackFunctions;

static void log_by_fmi2(void *environment, fmi3Status status, const char *category, const char *message) {
  const fmi2CallbackFunctions *callbacks = environment;
  if (callbacks && callbacks->logger)
    callbacks->logger(callbacks->componentEnvironment, "livens", status, category, "%s", message);
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
  return fmi3OK;
}
EXPORT fmi2Component fmi2Instantiate(fmi2String name, int type, fmi2String guid, fmi2String resources,
                                     const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
  if (type != fmi2CoSimulation) return 0;
  return fmi3InstantiateCoSimulation(name, guid, resources, visible, logging, 0, 0, 0, 0, (void *)callbacks, log_by_fmi2,
                                     0);
}
EXPORT void fmi2FreeInstance(fmi2Component c) { fmi3FreeInstance(c); }
EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                                      fmi2Boolean has_stop, fmi2Real stop) {
  return fmi3EnterInitializationMode(c, has_tolerance, tolerance, start, has_stop, stop);
}
EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi3OK; }
EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi3ExitInitializationMode(c); }
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { return fmi3OK; }
EXPORT fmi2Status fmi2Reset(fmi2Component c) { return fmi3Reset(c); }
EXPORT fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference refs[], size_t n, fmi2Real x[]) {
  return fmi3GetFloat64(c, refs, n, x, n);
}
EXPORT fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference refs[], size_t n, const fmi2Real x[]) {
  return fmi3SetFloat64(c, refs, n, x, n);
}
#define NO_VARIABLES(T)                                                                                            \
  EXPORT fmi2Status fmi2Get##T(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2##T x[]) {             \
    return n ? fmi3Error : fmi3OK;                                                                                 \
  }                                                                                                                \
  EXPORT fmi2Status fmi2Set##T(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2##T x[]) {       \
    return n ? fmi3Error : fmi3OK;                                                                                 \
  }
NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)
EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) { return fmi3GetFMUState(c, state); }
EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) { return fmi3SetFMUState(c, state); }
EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) { return fmi3FreeFMUState(c, state); }
EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
  return fmi3SerializedFMUStateSize(c, state, size);
}
EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  return fmi3SerializeFMUState(c, state, (fmi3Byte *)bytes, size);
}
EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
  return fmi3DeserializeFMUState(c, (const fmi3Byte *)bytes, size, state);
}
EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t n_unknowns,
                                               const fmi2ValueReference knowns[], size_t n_knowns,
                                               const fmi2Real seed[], fmi2Real sensitivity[]) {
  return fmi3GetDirectionalDerivative(c, unknowns, n_unknowns, knowns, n_knowns, seed, n_knowns, sensitivity, n_unknowns);
}
EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                              const fmi2Integer order[], const fmi2Real x[]) {
  return fmi3Error;
}
EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                               const fmi2Integer order[], fmi2Real x[]) {
  return fmi3Error;
}
EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real size, fmi2Boolean no_set) {
  fmi3Boolean event, terminate, early;
  double last;
  return fmi3DoStep(c, time, size, no_set, &event, &terminate, &early, &last);
}
EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { return fmi3Error; }
#define NO_STATUS(name, type) \
  EXPORT fmi2Status name(fmi2Component c, int kind, type *value) { return fmi3Discard; }
NO_STATUS(fmi2GetStatus, fmi2Status)
NO_STATUS(fmi2GetRealStatus, fmi2Real)
NO_STATUS(fmi2GetIntegerStatus, fmi2Integer)
NO_STATUS(fmi2GetBooleanStatus, fmi2Boolean)
NO_STATUS(fmi2GetStringStatus, fmi2String)
