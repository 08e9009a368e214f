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
KERNEL(residual_tangent);
KERNEL(state_tangent);
KERNEL(output_tangent);
#if HAS_START
KERNEL(start);
#endif

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
  Values values, before; /* before: at the start of the last communication step */
  fmi3LogMessageCallback log;
  fmi3InstanceEnvironment environment;
  int64_t n_last_steps;
  int is_initialized, is_start_outdated;
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

/* Solve the n equations of the augmented matrix A, n rows of n + 1, by elimination with row exchange. Unknowns whose
   pivot is at most `smallest` times the largest entry of their column are zero; without `smallest` they are an error. */
static int eliminate(double *A, int n, double *x, double smallest) {
  int W = n + 1, row = 0, is_regular = 1, *column_of = malloc(sizeof(int) * (n + 1));
  if (!column_of) return 0;
  for (int k = 0; k < n && is_regular; k++) {
    int pivot = row;
    double largest = 0;
    for (int i = 0; i < n; i++) {
      double size = fabs(A[i * W + k]);
      if (size > largest) largest = size;
      if (i > row && size > fabs(A[pivot * W + k])) pivot = i;
    }
    if (row >= n || !(fabs(A[pivot * W + k]) > smallest * largest)) {
      is_regular = smallest > 0;
      continue;
    }
    for (int j = k; pivot != row && j <= n; j++) {
      double value = A[pivot * W + j];
      A[pivot * W + j] = A[row * W + j];
      A[row * W + j] = value;
    }
    for (int i = row + 1; i < n; i++) {
      double factor = A[i * W + k] / A[row * W + k];
      for (int j = k; factor != 0 && j <= n; j++) A[i * W + j] -= factor * A[row * W + j];
    }
    column_of[row++] = k;
  }
  for (int i = 0; i < n; i++) x[i] = 0;
  for (int i = row - 1; i >= 0; i--) {
    double value = A[i * W + n];
    for (int j = column_of[i] + 1; j < n; j++) value -= A[i * W + j] * x[j];
    x[column_of[i]] = value / A[i * W + column_of[i]];
  }
  free(column_of);
  return is_regular;
}

/* Solve J dx = r for the increments dx of the unknowns, with the Jacobian of a step at x. J has n rows of n + 1. */
static int solve_newton(const double *x, const double *z, double *c, const double *r, double *J, double *dx) {
  double values[NNZ + N_UPDATE + 1], unused[N + 1];
  livens_jacobian((double *)x, (double *)z, c, unused, values);
  memset(J, 0, sizeof(double) * N * (N + 1));
  for (int i = 0; i < NNZ; i++) J[JAC_ROWS[i] * (N + 1) + JAC_COLUMNS[i]] += values[i];
  for (int i = 0; i < N; i++) J[i * (N + 1) + N] = r[i];
  if (!eliminate(J, N, dx, 0)) return 0;
  if (N_UPDATE) {
    double increment[N + 1];
    memset(increment, 0, sizeof increment);
    for (int i = 0; i < N_UPDATE; i++) increment[UPDATE_ROWS[i]] += values[NNZ + i] * dx[UPDATE_COLUMNS[i]];
    memcpy(dx, increment, sizeof(double) * N);
  }
  return 1;
}

/* Solve a step by Newton's method with dense elimination and row exchange, if the static pivot order fails. */
static int dense_step(Values *v) {
  double *J = malloc(sizeof(double) * N * (N + 1)), x[N], dx[N], last = INFINITY;
  double *inv_roundoff = v->work + INV_ROUNDOFF_OFFSET;
  int solved = 0;
  if (!J) return 0;
  memcpy(x, v->X + (HISTORY - 1) * N, sizeof x);
  memset(dx, 0, sizeof dx);
  livens_inv_roundoff(x, v->Z, v->c, dx, inv_roundoff);
  for (int iteration = 0; iteration < 40 && !solved; iteration++) {
    livens_residual(x, v->Z, v->c, v->r, v->r);
    if (!solve_newton(x, v->Z, v->c, v->r, J, dx)) goto done;
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

#if HAS_START
/* Terms of the start: constraints, their rates, momenta, right-hand side and KKT matrix (M, W^T; G, 0), scheme state. */
typedef struct {
  double values[3 * NM + 2 * NQ + N_KKT + N_SCHEME + 1];
  double G[NM * NQ + 1];
} StartTerms;
static void evaluate_start(Values *v, StartTerms *s) {
  double *kkt = s->values + 3 * NM + 2 * NQ;
  livens_start(v->X, v->Z, v->c, v->r, s->values);
  memset(s->G, 0, sizeof s->G);
  for (int i = 0; i < N_KKT; i++)
    if (KKT_ROWS[i] >= NQ && KKT_COLUMNS[i] < NQ) s->G[(KKT_ROWS[i] - NQ) * NQ + KKT_COLUMNS[i]] = kkt[i];
}

/* dx: smallest solution of G dx = r, with the rows of position constraints only if `positions`. */
static void smallest_solution(const StartTerms *s, const double *r, int positions, double *work, double *dx) {
  double *A = work, *lambda = work + NM * (NM + 1);
  for (int i = 0; i < NM; i++) {
    int is_used = !IS_REMOVED[i] && (!positions || IS_POSITION[i]);
    for (int j = 0; j < NM; j++) {
      double sum = 0;
      for (int l = 0; is_used && l < NQ; l++) sum += s->G[i * NQ + l] * s->G[j * NQ + l];
      A[i * (NM + 1) + j] = IS_REMOVED[j] || (positions && !IS_POSITION[j]) ? 0 : sum;
    }
    A[i * (NM + 1) + NM] = is_used ? r[i] : 0;
  }
  eliminate(A, NM, lambda, 1e-13);
  for (int l = 0; l < NQ; l++) {
    dx[l] = 0;
    for (int i = 0; i < NM; i++) dx[l] += s->G[i * NQ + l] * lambda[i];
  }
}

/* Largest residual of the constraints relative to their terms. */
static double violation(const StartTerms *s, const double *r, const double *x) {
  double largest = 0;
  for (int i = 0; i < NM; i++) {
    double scale = 1;
    for (int l = 0; l < NQ; l++) scale += fabs(s->G[i * NQ + l] * x[l]);
    if (!(fabs(r[i]) / scale <= largest)) largest = fabs(r[i]) / scale;
  }
  return largest;
}

/* Gauss-Newton iteration onto the position constraints. */
static int to_constraints(Values *v, StartTerms *s, double *work) {
  double *q = v->Z + Q_OFFSET, dq[NQ + 1], previous = INFINITY;
  for (int iteration = 0; iteration < 50; iteration++) {
    double size = 0, scale = 1;
    evaluate_start(v, s);
    smallest_solution(s, s->values, 1, work, dq);
    for (int l = 0; l < NQ; l++) {
      q[l] -= dq[l];
      if (!(fabs(dq[l]) <= size)) size = fabs(dq[l]);
      if (fabs(q[l]) > scale) scale = fabs(q[l]);
    }
    if (!(size < INFINITY)) return 0;
    if (size <= 1e-15 * scale || (size > 0.5 * previous && size < 1e-11 * scale)) break;
    previous = size;
  }
  evaluate_start(v, s);
  return violation(s, s->values, q) <= START_TOLERANCE;
}

static double distance(const double *a, const double *b) {
  double sum = 0;
  for (int l = 0; l < NQ; l++) sum += (a[l] - b[l]) * (a[l] - b[l]);
  return sqrt(sum);
}

/* Move the position to the nearest one on the constraints: Gauss-Newton, then tangential steps. */
static int project_position(Values *v, StartTerms *s, double *work) {
  double *q = v->Z + Q_OFFSET, given[NQ + 1], best[NQ + 1], origin[NQ + 1], tangential[NQ + 1], normal[NQ + 1], r[NM + 1];
  memcpy(given, q, sizeof(double) * NQ);
  if (!to_constraints(v, s, work)) return 0;
  for (int iteration = 0; iteration < 200; iteration++) {
    double size = 0, scale = 1;
    memcpy(origin, q, sizeof(double) * NQ);
    for (int i = 0; i < NM; i++) {
      r[i] = 0;
      for (int l = 0; l < NQ; l++) r[i] += s->G[i * NQ + l] * (given[l] - q[l]);
    }
    smallest_solution(s, r, 1, work, normal);
    for (int l = 0; l < NQ; l++) {
      tangential[l] = given[l] - q[l] - normal[l];
      if (fabs(tangential[l]) > size) size = fabs(tangential[l]);
      if (fabs(q[l]) > scale) scale = fabs(q[l]);
    }
    if (size <= 1e-15 * scale) break;
    double shortest = distance(origin, given), factor = 1;
    int found = 0;
    for (int trial = 0; trial < 8; trial++, factor /= 2) {
      for (int l = 0; l < NQ; l++) q[l] = origin[l] + factor * tangential[l];
      if (to_constraints(v, s, work) && distance(q, given) < shortest) {
        shortest = distance(q, given);
        memcpy(best, q, sizeof(double) * NQ);
        found = 1;
      }
    }
    memcpy(q, found ? best : origin, sizeof(double) * NQ);
    evaluate_start(v, s);
    if (!found) break;
  }
  return 1;
}

/* Compute the initial state for the parameters: positions and velocities on the constraints, momenta, multipliers. */
static int compute_start(Values *v) {
  int size = NQ + NM, W = size + 1, solved = 0, kept = 0, index[NQ + NM + 1];
  double *work = malloc(sizeof(double) * (size * (size + 1) + 3 * size + 3)), *velocity = v->Z + V_OFFSET;
  StartTerms *s = malloc(sizeof(StartTerms));
  if (!work || !s) goto done;
  v->c[0] = v->h;
  v->c[1] = v->time;
  evaluate_start(v, s);
  if (!(violation(s, s->values, v->Z + Q_OFFSET) <= START_TOLERANCE) && !project_position(v, s, work)) goto done;
  if (!(violation(s, s->values + NM, velocity) <= START_TOLERANCE)) {
    double dv[NQ + 1];
    smallest_solution(s, s->values + NM, 0, work, dv);
    for (int l = 0; l < NQ; l++) velocity[l] -= dv[l];
    evaluate_start(v, s);
  }
  memcpy(v->Z + P_OFFSET, s->values + 2 * NM, sizeof(double) * NQ);
  for (int i = 0; i < N_SCHEME; i++) v->Z[SCHEME_ENTRIES[i]] = s->values[3 * NM + 2 * NQ + N_KKT + i];
  for (int i = 0; i < size; i++) index[i] = i >= NQ && IS_REMOVED[i - NQ] ? -1 : kept++;
  W = kept + 1;
  memset(work, 0, sizeof(double) * kept * W);
  for (int i = 0; i < N_KKT; i++)
    if (index[KKT_ROWS[i]] >= 0 && index[KKT_COLUMNS[i]] >= 0)
      work[index[KKT_ROWS[i]] * W + index[KKT_COLUMNS[i]]] += s->values[3 * NM + 2 * NQ + i];
  for (int i = 0; i < size; i++)
    if (index[i] >= 0) work[index[i] * W + kept] = s->values[2 * NM + NQ + i];
  eliminate(work, kept, work + size * (size + 1), 1e-13);
  for (int i = 0; i < NM && LAMBDA_OFFSET >= 0; i++)
    v->Z[LAMBDA_OFFSET + i] = index[NQ + i] < 0 ? 0 : work[size * (size + 1) + index[NQ + i]];
  livens_initial_guess(v->X, v->Z, v->c, v->r, v->X);
  for (int h = 1; h < HISTORY; h++) memcpy(v->X + h * N, v->X, sizeof(double) * N);
  solved = 1;
  for (int i = 0; i < NZ; i++) solved = solved && isfinite(v->Z[i]);
done:
  free(work);
  free(s);
  return solved;
}
#endif

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
  Instance *instance = p;
  instance->values.t_origin = instance->values.time = start;
  instance->is_start_outdated |= start != T0;
  return fmi3OK;
}
/* Compute the start anew, if a parameter or the time of the start has changed since it was computed. */
static int update_start(Instance *instance) {
#if HAS_START
  Values *v = &instance->values;
  if (!instance->is_start_outdated || instance->is_initialized) return 1;
  instance->is_start_outdated = 0;
  memcpy(v->Z, INITIAL_STATE, sizeof(double) * NZ);
  v->outputs_valid = v->has_angles = 0;
  if (!compute_start(v)) {
    if (instance->log)
      instance->log(instance->environment, fmi3Error, "logStatusError", "no consistent start with these parameters");
    return 0;
  }
#endif
  return 1;
}
EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance p) {
  Instance *instance = p;
  if (!update_start(instance)) return fmi3Error;
  instance->is_initialized = 1;
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
  instance->is_initialized = instance->is_start_outdated = 0;
  instance->n_last_steps = 0;
  return fmi3OK;
}

/* value references: 0 time, 1 ... NK parameters and inputs, then the outputs */
EXPORT fmi3Status fmi3GetFloat64(fmi3Instance p, const fmi3ValueReference refs[], size_t n, fmi3Float64 x[],
                                 size_t nx) {
  Values *v = &((Instance *)p)->values;
  if (!update_start(p)) return fmi3Error;
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
    if (refs[i] < 1 || refs[i] > NK || VARIABLE_OF[refs[i] - 1] != (int)refs[i] - 1) return fmi3Error;
    for (int j = 0; j < NK; j++)
      if (VARIABLE_OF[j] == (int)refs[i] - 1) instance->values.c[2 + j] = x[i];
    instance->is_start_outdated |= SETS_START[refs[i] - 1];
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
  memcpy(&instance->before, v, sizeof *v);
  instance->n_last_steps = count;
  for (int64_t s = 0; s < count; s++) {
    if (!advance(v)) {
      instance->n_last_steps = 0;
      *last = v->time;
      if (instance->log) instance->log(instance->environment, fmi3Error, "logStatusError", "a step did not converge");
      return fmi3Error;
    }
  }
  *last = time + size;
  return fmi3OK;
}

/* Derivatives of the outputs by inputs and tunable parameters that are held in the last communication step: its steps
   are repeated with their tangents. */
EXPORT fmi3Status fmi3GetDirectionalDerivative(fmi3Instance p, const fmi3ValueReference unknowns[], size_t n_unknowns,
                                               const fmi3ValueReference knowns[], size_t n_knowns, const double seed[],
                                               size_t n_seed, double sensitivity[], size_t n_sensitivity) {
  Instance *instance = p;
  Values *v = malloc(sizeof(Values));
  double *J = malloc(sizeof(double) * (N + 1) * (N + 1)), z[NZ], c[2 + NK], dx[N + 1], rates[N + 1], dz_next[NZ];
  double tangent[N + NZ + NK + 1], *dz = tangent + N, *dk = dz + NZ, changes[NOUT + 1];
  fmi3Status status = fmi3Error;
  if (!v || !J || n_seed != n_knowns || n_sensitivity != n_unknowns) goto done;
  memset(tangent, 0, sizeof tangent);
  for (size_t i = 0; i < n_knowns; i++) {
    if (knowns[i] < 1 || knowns[i] > NK || VARIABLE_OF[knowns[i] - 1] != (int)knowns[i] - 1) goto done;
    for (int j = 0; j < NK; j++)
      if (VARIABLE_OF[j] == (int)knowns[i] - 1) dk[j] += seed[i];
  }
  memcpy(v, instance->n_last_steps ? &instance->before : &instance->values, sizeof *v);
  for (int64_t s = 0; s < instance->n_last_steps; s++) {
    double *x = v->X + (HISTORY - 1) * N;
    memcpy(z, v->Z, sizeof z);
    if (!advance(v)) goto done;
    memcpy(c, v->c, sizeof c);
    livens_residual_tangent(x, z, c, tangent, rates);
    if (!solve_newton(x, z, c, rates, J, dx)) goto done;
    for (int i = 0; i < N; i++) tangent[i] = -dx[i];
    livens_state_tangent(x, z, c, tangent, dz_next);
    memcpy(dz, dz_next, sizeof dz_next);
  }
  v->c[1] = v->time;
  livens_output_tangent(v->X + (HISTORY - 1) * N, v->Z, v->c, tangent, changes);
  for (size_t i = 0; i < n_unknowns; i++) {
    if (unknowns[i] <= NK || unknowns[i] > NK + NOUT) goto done;
    sensitivity[i] = changes[unknowns[i] - NK - 1];
  }
  status = fmi3OK;
done:
  free(v);
  free(J);
  return status;
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance p, fmi3FMUState *state) {
  if (!*state) *state = malloc(sizeof(Values));
  if (!*state) return fmi3Error;
  memcpy(*state, &((Instance *)p)->values, sizeof(Values));
  return fmi3OK;
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance p, fmi3FMUState state) {
  memcpy(&((Instance *)p)->values, state, sizeof(Values));
  ((Instance *)p)->n_last_steps = 0;
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
