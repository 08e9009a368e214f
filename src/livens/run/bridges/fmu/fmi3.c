/* FMI 3.0 co-simulation unit of a compiled step of livens.

   model.h is generated: sizes, initial state and tables. The kernels and the time loop are LLVM IR. All values of an
   instance form one block of memory, so that its state is saved, restored and serialised as a whole. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef double fmi3Float64;
typedef _Bool fmi3Boolean;
typedef uint32_t fmi3ValueReference;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(void);

/* kernels: (unknowns x, state z, inputs c, residual r, output) */
typedef void (*Kernel)(double *, double *, double *, double *, double *);
#define KERNEL(name) void livens_##name(double *, double *, double *, double *, double *)
KERNEL(newton);
KERNEL(first_correction);
KERNEL(residual);
KERNEL(inv_roundoff);
KERNEL(update_state);
KERNEL(initial_guess);
KERNEL(predict);
KERNEL(jacobian);
KERNEL(outputs);

/* layouts of StepKernels and Workspace in livens.engine.newton.iteration */
typedef struct {
  Kernel newton, first_correction, residual, inv_roundoff, update_state, initial_guess, predict, error, extrapolate;
  int64_t external[6];
} StepKernels;
typedef struct {
  double *c, *Z, *X, *t;
  int64_t *newton_iterations;
  double *work, *newton_update, *inv_roundoff, *r, *estimate;
  int64_t *group_sizes;
  int64_t n_unknowns, n_state, n_groups;
  int64_t *counters;
  double *scratch;
} Workspace;
int64_t livens_advance_fixed(StepKernels *, Workspace *, double, double, int64_t, int64_t, double, int64_t, int64_t,
                             int64_t);

static const StepKernels KERNELS = {livens_newton,       HAS_FIRST_CORRECTION ? livens_first_correction : 0,
                                    livens_residual,     livens_inv_roundoff,
                                    livens_update_state, livens_initial_guess,
                                    livens_predict};

typedef struct {
  double c[2 + NK], Z[2 * NZ], X[(HISTORY + 1) * N], t[2], work[N_WORK], r[N + 1], scratch[3 * N + NZ + 4], estimate[1];
  double t_origin, h, time, outputs[NOUT + 1];
  int64_t newton_iterations[1], counters[3], step_index, n_dense_steps, outputs_valid, has_angles;
} Values;
typedef struct {
  Values values;
  fmi3LogMessageCallback log;
  fmi3InstanceEnvironment environment;
  int is_initialized;
} Instance;

static void bind_workspace(Values *v, Workspace *w) {
  w->c = v->c;
  w->Z = v->Z;
  w->X = v->X;
  w->t = v->t;
  w->newton_iterations = v->newton_iterations;
  w->work = v->work;
  w->newton_update = v->work + UPDATE_OFFSET;
  w->inv_roundoff = v->work + INV_ROUNDOFF_OFFSET;
  w->r = v->r;
  w->estimate = v->estimate;
  w->group_sizes = (int64_t *)GROUP_SIZES;
  w->n_unknowns = N;
  w->n_state = NZ;
  w->n_groups = N_GROUPS;
  w->counters = v->counters;
  w->scratch = v->scratch;
}

static void reset_values(Values *v) {
  memset(v, 0, sizeof *v);
  memcpy(v->c + 2, PARAMETERS, sizeof(double) * NK);
  memcpy(v->Z, INITIAL_STATE, sizeof(double) * NZ);
  for (int s = 0; s < HISTORY; s++) memcpy(v->X + s * N, INITIAL_UNKNOWNS, sizeof(double) * N);
  for (int i = 0; i < N; i++) v->work[INV_ROUNDOFF_OFFSET + i] = INFINITY;
  v->h = STEP_SIZE;
  v->t_origin = v->time = T0;
}

/* Evaluate the outputs; angles are continuous from step to step. */
static void update_outputs(Values *v) {
  if (v->outputs_valid) return;
  double t = v->c[1], before[NOUT + 1];
  memcpy(before, v->outputs, sizeof before);
  v->c[1] = v->time;
  livens_outputs(v->X + (HISTORY - 1) * N, v->Z, v->c, v->r, v->outputs);
  v->c[1] = t;
  for (int i = 0; i < NOUT; i++)
    if (IS_ANGLE[i] && v->has_angles)
      v->outputs[i] += 6.283185307179586 * nearbyint((before[i] - v->outputs[i]) / 6.283185307179586);
  v->has_angles = v->outputs_valid = 1;
}

/* Solve a step by Newton's method with dense elimination and row exchange, if the static pivot order fails. */
static int dense_step(Values *v) {
  static const int W = N + 1;
  double *J = malloc(sizeof(double) * N * (N + 1)), x[N], dx[N], values[NNZ + N_UPDATE + 1], last = INFINITY;
  double *inv_roundoff = v->work + INV_ROUNDOFF_OFFSET;
  int solved = 0;
  if (!J) return 0;
  memcpy(x, v->X + (HISTORY - 1) * N, sizeof x);
  memset(dx, 0, sizeof dx);
  livens_inv_roundoff(x, v->Z, v->c, dx, inv_roundoff);
  for (int iteration = 0; iteration < 40 && !solved; iteration++) {
    livens_residual(x, v->Z, v->c, v->r, v->r);
    livens_jacobian(x, v->Z, v->c, v->r, values);
    memset(J, 0, sizeof(double) * N * (N + 1));
    for (int i = 0; i < NNZ; i++) J[JAC_ROWS[i] * W + JAC_COLUMNS[i]] += values[i];
    for (int i = 0; i < N; i++) J[i * W + N] = v->r[i];
    for (int k = 0; k < N; k++) {
      int pivot = k;
      for (int i = k + 1; i < N; i++)
        if (fabs(J[i * W + k]) > fabs(J[pivot * W + k])) pivot = i;
      if (!(fabs(J[pivot * W + k]) > 0)) goto done;
      for (int j = k; pivot != k && j <= N; j++) {
        double value = J[pivot * W + j];
        J[pivot * W + j] = J[k * W + j];
        J[k * W + j] = value;
      }
      for (int i = k + 1; i < N; i++) {
        double factor = J[i * W + k] / J[k * W + k];
        for (int j = k; factor != 0 && j <= N; j++) J[i * W + j] -= factor * J[k * W + j];
      }
    }
    for (int i = N - 1; i >= 0; i--) {
      double value = J[i * W + N];
      for (int j = i + 1; j < N; j++) value -= J[i * W + j] * dx[j];
      dx[i] = value / J[i * W + i];
    }
    if (N_UPDATE) {
      double increment[N];
      memset(increment, 0, sizeof increment);
      for (int i = 0; i < N_UPDATE; i++) increment[UPDATE_ROWS[i]] += values[NNZ + i] * dx[UPDATE_COLUMNS[i]];
      memcpy(dx, increment, sizeof dx);
    }
    for (int i = 0; i < N; i++) x[i] -= dx[i];
    livens_residual(x, v->Z, v->c, v->r, v->r);
    livens_inv_roundoff(x, v->Z, v->c, dx, inv_roundoff);
    double norm = 0;
    for (int i = 0; i < N; i++) {
      double scaled = fabs(v->r[i]) * inv_roundoff[i];
      if (!(scaled <= norm)) norm = scaled;
    }
    if (!(norm < INFINITY)) goto done;
    solved = norm <= 1.0 || (iteration > 2 && norm > 0.5 * last && norm < 1e6);
    last = norm;
  }
  if (solved) {
    memcpy(v->X + HISTORY * N, x, sizeof x);
    memcpy(v->work + UPDATE_OFFSET, dx, sizeof dx);
    livens_update_state(x, v->Z, v->c, v->r, v->Z + NZ);
    v->n_dense_steps++;
  }
done:
  free(J);
  return solved;
}

static int advance(Values *v) {
  Workspace w;
  StepKernels kernels = KERNELS;
  bind_workspace(v, &w);
  if (livens_advance_fixed(&kernels, &w, v->h, v->t_origin, v->step_index, -1, INFINITY, 0, 1, REPIVOT_AFTER) !=
          STATUS_CONVERGED &&
      !dense_step(v))
    return 0;
  memmove(v->X, v->X + N, sizeof(double) * HISTORY * N);
  memcpy(v->Z, v->Z + NZ, sizeof(double) * NZ);
  v->step_index++;
  v->time = v->t_origin + v->step_index * v->h;
  v->outputs_valid = 0;
  for (int i = 0; i < NZ; i++)
    if (!isfinite(v->Z[i])) return 0;
  if (N_ANGLES) update_outputs(v);
  return 1;
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance p, fmi3Boolean on, size_t n, const fmi3String c[]) { return fmi3OK; }
EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources,
                                                fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean events,
                                                fmi3Boolean early, const fmi3ValueReference required[], size_t count,
                                                fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                                fmi3IntermediateUpdateCallback update) {
  if (!token || strcmp(token, TOKEN)) {
    if (log) log(environment, fmi3Error, "logStatusError", "the instantiation token belongs to another FMU");
    return 0;
  }
  Instance *instance = calloc(1, sizeof *instance);
  if (instance) {
    instance->log = log;
    instance->environment = environment;
    reset_values(&instance->values);
  }
  return instance;
}
EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String a, fmi3String b, fmi3String c, fmi3Boolean d, fmi3Boolean e,
                                                 fmi3InstanceEnvironment f, fmi3LogMessageCallback g) {
  return 0;
}
EXPORT fmi3Instance fmi3InstantiateScheduledExecution(fmi3String a, fmi3String b, fmi3String c, fmi3Boolean d,
                                                      fmi3Boolean e, fmi3InstanceEnvironment f,
                                                      fmi3LogMessageCallback g, void *h, void *i, void *j) {
  return 0;
}
EXPORT void fmi3FreeInstance(fmi3Instance p) { free(p); }
EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance p, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                              fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop) {
  Values *v = &((Instance *)p)->values;
  v->t_origin = v->time = start;
  return fmi3OK;
}
EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance p) {
  ((Instance *)p)->is_initialized = 1;
  return fmi3OK;
}
EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance p) { return fmi3Error; }
EXPORT fmi3Status fmi3EnterStepMode(fmi3Instance p) { return fmi3Error; }
EXPORT fmi3Status fmi3EnterConfigurationMode(fmi3Instance p) { return fmi3Error; }
EXPORT fmi3Status fmi3ExitConfigurationMode(fmi3Instance p) { return fmi3Error; }
EXPORT fmi3Status fmi3Terminate(fmi3Instance p) { return fmi3OK; }
EXPORT fmi3Status fmi3Reset(fmi3Instance p) {
  Instance *instance = p;
  reset_values(&instance->values);
  instance->is_initialized = 0;
  return fmi3OK;
}

/* value references: 0 time, 1 ... NK parameters and inputs, then the outputs */
EXPORT fmi3Status fmi3GetFloat64(fmi3Instance p, const fmi3ValueReference refs[], size_t n, fmi3Float64 x[],
                                 size_t nx) {
  Values *v = &((Instance *)p)->values;
  for (size_t i = 0; i < n; i++) {
    if (refs[i] == 0) {
      x[i] = v->time;
    } else if (refs[i] <= NK) {
      x[i] = v->c[1 + refs[i]];
    } else if (refs[i] <= NK + NOUT) {
      update_outputs(v);
      x[i] = v->outputs[refs[i] - NK - 1];
    } else {
      return fmi3Error;
    }
  }
  return fmi3OK;
}
EXPORT fmi3Status fmi3SetFloat64(fmi3Instance p, const fmi3ValueReference refs[], size_t n, const fmi3Float64 x[],
                                 size_t nx) {
  Instance *instance = p;
  for (size_t i = 0; i < n; i++) {
    if (refs[i] < 1 || refs[i] > NK || !IS_VARIABLE[refs[i] - 1]) return fmi3Error;
    instance->values.c[1 + refs[i]] = x[i];
  }
  instance->values.outputs_valid = 0;
  return fmi3OK;
}
EXPORT fmi3Status fmi3DoStep(fmi3Instance p, fmi3Float64 time, fmi3Float64 size, fmi3Boolean no_set, fmi3Boolean *event,
                             fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
  Instance *instance = p;
  Values *v = &instance->values;
  *event = *terminate = *early = 0;
  double ratio = size / STEP_SIZE;
  int64_t count = (int64_t)llround(ratio);
  if (count < 1 || fabs(ratio - (double)count) > 1e-9 * (ratio + 1)) { /* not a multiple: shorter, equal steps */
    count = (int64_t)ceil(ratio - 1e-9);
    if (count < 1) count = 1;
    v->t_origin = v->time;
    v->step_index = 0;
    v->h = size / (double)count;
  } else if (v->h != STEP_SIZE) {
    v->t_origin = v->time;
    v->step_index = 0;
    v->h = STEP_SIZE;
  }
  for (int64_t s = 0; s < count; s++) {
    if (!advance(v)) {
      *last = v->time;
      if (instance->log) instance->log(instance->environment, fmi3Error, "logStatusError", "a step did not converge");
      return fmi3Error;
    }
  }
  *last = time + size;
  return fmi3OK;
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance p, fmi3FMUState *state) {
  if (!*state) *state = malloc(sizeof(Values));
  if (!*state) return fmi3Error;
  memcpy(*state, &((Instance *)p)->values, sizeof(Values));
  return fmi3OK;
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance p, fmi3FMUState state) {
  memcpy(&((Instance *)p)->values, state, sizeof(Values));
  return fmi3OK;
}
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance p, fmi3FMUState *state) {
  free(*state);
  *state = 0;
  return fmi3OK;
}
EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance p, fmi3FMUState state, size_t *size) {
  *size = sizeof(Values);
  return fmi3OK;
}
EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance p, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  if (size < sizeof(Values)) return fmi3Error;
  memcpy(bytes, state, sizeof(Values));
  return fmi3OK;
}
EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance p, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
  if (size != sizeof(Values)) return fmi3Error;
  if (!*state) *state = malloc(size);
  if (!*state) return fmi3Error;
  memcpy(*state, bytes, size);
  return fmi3OK;
}

/* functions of FMI 3.0 that this FMU does not support */
#define UNSUPPORTED(name, ...) \
  EXPORT fmi3Status name(__VA_ARGS__) { return fmi3Error; }
#define VARIABLES(T, type)                                                                                      \
  UNSUPPORTED(fmi3Get##T, fmi3Instance p, const fmi3ValueReference v[], size_t n, type x[], size_t m)           \
  UNSUPPORTED(fmi3Set##T, fmi3Instance p, const fmi3ValueReference v[], size_t n, const type x[], size_t m)
VARIABLES(Float32, float)
VARIABLES(Int8, int8_t)
VARIABLES(UInt8, uint8_t)
VARIABLES(Int16, int16_t)
VARIABLES(UInt16, uint16_t)
VARIABLES(Int32, int32_t)
VARIABLES(UInt32, uint32_t)
VARIABLES(Int64, int64_t)
VARIABLES(UInt64, uint64_t)
VARIABLES(Boolean, fmi3Boolean)
VARIABLES(String, fmi3String)
#define REFS fmi3Instance p, const fmi3ValueReference v[], size_t n
UNSUPPORTED(fmi3GetBinary, REFS, size_t s[], fmi3Binary x[], size_t m)
UNSUPPORTED(fmi3SetBinary, REFS, const size_t s[], const fmi3Binary x[], size_t m)
UNSUPPORTED(fmi3GetClock, REFS, fmi3Boolean x[])
UNSUPPORTED(fmi3SetClock, REFS, const fmi3Boolean x[])
UNSUPPORTED(fmi3GetNumberOfVariableDependencies, fmi3Instance p, fmi3ValueReference v, size_t *n)
UNSUPPORTED(fmi3GetVariableDependencies, fmi3Instance p, fmi3ValueReference v, size_t a[], fmi3ValueReference b[],
            size_t c[], int d[], size_t n)
UNSUPPORTED(fmi3GetDirectionalDerivative, REFS, const fmi3ValueReference k[], size_t nk, const double s[], size_t ns,
            double t[], size_t nt)
UNSUPPORTED(fmi3GetAdjointDerivative, REFS, const fmi3ValueReference k[], size_t nk, const double s[], size_t ns,
            double t[], size_t nt)
UNSUPPORTED(fmi3GetIntervalDecimal, REFS, double x[], int q[])
UNSUPPORTED(fmi3GetIntervalFraction, REFS, uint64_t c[], uint64_t r[], int q[])
UNSUPPORTED(fmi3GetShiftDecimal, REFS, double x[])
UNSUPPORTED(fmi3GetShiftFraction, REFS, uint64_t c[], uint64_t r[])
UNSUPPORTED(fmi3SetIntervalDecimal, REFS, const double x[])
UNSUPPORTED(fmi3SetIntervalFraction, REFS, const uint64_t c[], const uint64_t r[])
UNSUPPORTED(fmi3SetShiftDecimal, REFS, const double x[])
UNSUPPORTED(fmi3SetShiftFraction, REFS, const uint64_t c[], const uint64_t r[])
UNSUPPORTED(fmi3EvaluateDiscreteStates, fmi3Instance p)
UNSUPPORTED(fmi3UpdateDiscreteStates, fmi3Instance p, fmi3Boolean *a, fmi3Boolean *b, fmi3Boolean *c, fmi3Boolean *d,
            fmi3Boolean *e, double *f)
UNSUPPORTED(fmi3EnterContinuousTimeMode, fmi3Instance p)
UNSUPPORTED(fmi3CompletedIntegratorStep, fmi3Instance p, fmi3Boolean a, fmi3Boolean *b, fmi3Boolean *c)
UNSUPPORTED(fmi3SetTime, fmi3Instance p, double t)
UNSUPPORTED(fmi3SetContinuousStates, fmi3Instance p, const double x[], size_t n)
UNSUPPORTED(fmi3GetContinuousStateDerivatives, fmi3Instance p, double x[], size_t n)
UNSUPPORTED(fmi3GetEventIndicators, fmi3Instance p, double x[], size_t n)
UNSUPPORTED(fmi3GetContinuousStates, fmi3Instance p, double x[], size_t n)
UNSUPPORTED(fmi3GetNominalsOfContinuousStates, fmi3Instance p, double x[], size_t n)
UNSUPPORTED(fmi3GetNumberOfEventIndicators, fmi3Instance p, size_t *n)
UNSUPPORTED(fmi3GetNumberOfContinuousStates, fmi3Instance p, size_t *n)
UNSUPPORTED(fmi3GetOutputDerivatives, REFS, const int32_t o[], double x[], size_t m)
UNSUPPORTED(fmi3ActivateModelPartition, fmi3Instance p, fmi3ValueReference v, double t)
