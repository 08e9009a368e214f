"""Records of the tree tier: layout of the numbers of one body, and the arrays of a tree.

All vectors are in space axes and have four entries. Scaled unknowns of a step are ``alpha = h w/2`` and ``ups = h u/2``
of a body, ``tau = tan(dtheta/2)`` of a revolute joint and half the increment of a prismatic one. A joint of several
degrees of freedom is a chain of such joints with massless bodies in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.lowering.types import F64Array, I64Array, Struct

#: Types of tree joints.
FREE, REVOLUTE, PRISMATIC, SPHERICAL, FIXED, ROTOR = 0, 1, 2, 3, 4, 5
#: Number of unknowns by type; the coordinate of a rotor is that of the joint whose armature it is.
N_UNKNOWNS = (6, 1, 1, 3, 0, 0)
#: Model body of massless bodies (of sliding joints, and of the cross of universal joints), and of the ground.
CARRIAGE, CROSS, GROUND = -1, -2, -3

# -- offsets in the record of a body; matrices have twelve entries ---------------------------------------------------
#: Geometry: joint position on parent and body, axis on both, relative rotation of fixed and prismatic joints, inertia.
X, Y, AXIS_A, AXIS_B, RELATIVE, J = 0, 4, 8, 12, 16, 28
#: State: centre, rotation matrix, linear momentum, body angular momentum.
PHI, R, P, PI = 40, 44, 56, 60
#: Start of the step: levers and axis, scaled momenta, spatial inertia.
X0, Y0, N0, P0, L0, I0 = 64, 68, 72, 76, 80, 84
#: Evaluation: unknowns, levers and axis at the midpoint, wrench residual, joint torque, angular momentum at the end.
UPS, ALPHA, XM, YM, NM, N1, RP, RL, MO, L1 = 96, 100, 104, 108, 112, 116, 120, 124, 128, 132
#: Linearization: levers at the end, 6x6 blocks, eliminated rows and columns, variations, eliminated residuals.
X1, Y1, A11, A12, A21, A22, U1, U2, V1, V2, EPS, NU, C1, C2 = (
    136, 140, 144, 156, 168, 180, 192, 196, 200, 204, 208, 212, 216, 220,
)  # fmt: skip
#: Scalars: mass, joint unknown, joint displacement, ``1/(1 + a.a)``, rate factor g, row residual, joint force times
#: h^2/4, ``a . n0``, reciprocal pivot, eliminated unknown, its change, derivatives of the joint force.
MASS, TAU, D0, F, G, ROW, Q, AN, PIVOT, DELTA, DTAU, Q_TAU = 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235
#: Derivative of the joint force by the parent's variation, applied force, LU factors of free and spherical joints.
Q_EPS, WEIGHT, LU = 236, 240, 244
#: Inverse of the inertia tensor, first two axes of the joint on its first body.
J_INV, A1, A2 = 280, 292, 296
#: Armature of the joint, half the step size times its momentum, its joint force times h^2/4, and the derivative of the
#: joint force by the joint unknown.
ARMATURE, ARMATURE_MOMENTUM, ARMATURE_FORCE, ARMATURE_TAU = 300, 301, 302, 303
#: Block of a spherical joint before its elimination, for further right-hand sides.
SAVED_A12 = 304
#: Size of a record.
STRIDE = 320

# -- record of the force laws of one joint coordinate ----------------------------------------------------------------
#: Reference axes on both bodies, the same in space at the start of the step.
LAW_A1, LAW_A2, LAW_B1, LAW_A10, LAW_A20, LAW_B10 = 0, 4, 8, 12, 16, 20
#: Arguments of the kernels: invariants at start, end and midpoint, their rate, derivative of those at the end.
LAW_W0, LAW_W1, LAW_WM, LAW_U, LAW_DW = 24, 26, 28, 30, 32
#: Sums over the laws of a joint: forces on the invariants, their derivatives in total and by those at the midpoint.
LAW_F, LAW_DF, LAW_FM, LAW_OUT = 36, 38, 40, 44
LAW_STRIDE = 56

# -- closures ---------------------------------------------------------------------------------------------------------
#: Integers of a closure: number of bodies and their start in `closure_bodies`; number of coupled wrench entries and
#: their start in `closure_entries`; number of multipliers, the first one among the unknowns, and the first column.
C_BODIES, C_BODY, C_COUPLED, C_ENTRY, C_MULTIPLIERS, C_UNKNOWN, C_COLUMN = range(7)
#: Starts of inputs, motions, poses and outputs; of constraints, columns and rows among the outputs.
C_INPUTS, C_MOTION, C_POSE, C_OUTPUTS, C_CONSTRAINTS, C_COLUMNS, C_ROWS = range(7, 14)
#: Kernels of the step, of its work and of constraint residuals; numbers of residuals on position and velocity level.
C_STEP, C_WORK, C_RESIDUALS, C_POSITIONS, C_VELOCITIES = range(14, 19)
#: Start and length, in `closure_paths`, of the bodies between the closure and the roots, in topological order.
C_PATH, C_PATH_LENGTH, CLOSURE_INTS = range(19, 22)
#: Outputs per body: wrench and own blocks.
WRENCH_AND_BLOCKS = 56

#: Numbers of one body in a compact state: centre, rotation matrix, linear momentum, body angular momentum.
COMPACT = 18


@dataclass(frozen=True, eq=False)
class TreeArrays(Struct):
    """Tree of bodies in topological order; the ground is the record after the last body.

    A mechanism in the plane moves in the plane of the first two axes of space, without force or momentum normal to it.
    """

    dimension: int
    n_bodies: int
    n_driven: int  # bodies without the rotors of armatures, which follow
    n_unknowns: int
    n_real: int
    joint_type: I64Array
    parent: I64Array
    #: Index among the bodies of the model, or `CARRIAGE` or `CROSS`.
    model_body: I64Array
    #: Body at the end of the chain of massless bodies.
    tail: I64Array
    unknown_ptr: I64Array
    #: First body angular momentum of each body of the model, or -1 for a body with one coordinate.
    spin_ptr: I64Array
    driver: I64Array  # body whose joint drives a rotor, or -1
    records: F64Array
    newton: F64Array  # norms of the Newton iteration
    # force laws by joint
    law_of_body: I64Array  # index of the law record, or -1
    law_sign: F64Array  # -1 if the parent is the second body of the joint
    law_ptr: I64Array
    law_kernel: I64Array
    law_work_kernel: I64Array
    law_inputs_ptr: I64Array
    law_inputs: F64Array
    law_records: F64Array
    n_laws: int
    # forces on single bodies
    n_forces: int
    force_body: I64Array
    force_kernel: I64Array
    force_work_kernel: I64Array
    force_inputs_ptr: I64Array
    force_inputs: F64Array
    force_outputs: F64Array
    # closures: elements that connect bodies other than by a tree joint
    n_closures: int
    n_columns: int  # of the Schur complement: own rows and multipliers of all closures
    n_joint_unknowns: int  # unknowns before the multipliers of closures
    closures: I64Array  # (n_closures, CLOSURE_INTS)
    closure_bodies: I64Array
    closure_entries: I64Array  # pairs of opposite entries of coupled wrenches (or one and -1), eight per body
    closure_paths: I64Array
    closure_inputs: F64Array
    closure_data: F64Array
    n_active: int
    active: I64Array  # bodies between closures and the roots, in topological order
    schur: F64Array  # matrix of order n_columns, right-hand side, and diagonal of the matrix
