"""Targets of the mutation test: files with the tests that verify them, and mutants written by hand."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """Files of the package, how many changes are made in each, and the tests that must notice, the quick ones first."""

    files: tuple[str, ...]
    count: int
    tests: tuple[str, ...]


TARGETS = (
    # schemes
    Target(
        (
            "schemes/energy_momentum/livens_em.py",
            "schemes/energy_momentum/livens_midpoint.py",
            "schemes/symplectic/livens_variational.py",
        ),
        4,
        (
            "claims/test_conservation.py",
            "unit/models/test_velocity_constraints.py",
            "claims/test_orders.py",
            "claims/test_schemes.py",
            "claims/test_symplecticity.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/symplectic/ggl.py", "schemes/energy_momentum/ggl_em.py"),
        8,
        (
            "claims/test_ggl.py",
            "claims/test_orders.py",
            "claims/test_schemes.py",
            "claims/test_conservation.py",
            "claims/test_symplecticity.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/energy_momentum/livens_em_full.py", "schemes/energy_momentum/livens_em_nullspace.py"),
        3,
        (
            "claims/test_em_variants.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        (
            "schemes/symplectic/lobatto_pair.py",
            "schemes/runge_kutta/murua.py",
            "schemes/discretization/livens_runge_kutta.py",
            "schemes/discretization/stage_elimination.py",
        ),
        4,
        ("claims/test_partitioned.py", "claims/test_runge_kutta.py", "unit/run/test_dense.py", "claims/test_traits.py"),
    ),
    Target(
        ("schemes/discretization/dae_runge_kutta.py",),
        4,
        ("claims/test_dae.py", "claims/test_runge_kutta.py", "unit/run/test_dense.py", "claims/test_traits.py"),
    ),
    Target(
        (
            "schemes/energy_momentum/hamilton.py",
            "schemes/symplectic/symplectic_euler.py",
            "schemes/symplectic/stormer_verlet.py",
            "schemes/symplectic/variational.py",
        ),
        3,
        (
            "claims/test_maps.py",
            "claims/test_em_variants.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/splitting/composition.py",),
        3,
        (
            "claims/test_composition.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/splitting/semi_explicit.py",),
        3,
        (
            "claims/test_black_box.py",
            "claims/test_semi_explicit.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        (
            "schemes/time_transformed/sundman.py",
            "schemes/time_transformed/sundman_doubled.py",
            "schemes/time_transformed/step_density.py",
        ),
        2,
        (
            "unit/schemes/test_scaling.py",
            "claims/test_nambu_schemes.py",
            "claims/test_adaptive.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/splitting/nambu.py",),
        3,
        (
            "claims/test_nambu_schemes.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        (
            "schemes/gradients/gonzalez.py",
            "schemes/gradients/itoh_abe.py",
            "schemes/gradients/mean_value.py",
            "schemes/gradients/correction.py",
        ),
        3,
        (
            "claims/test_discrete_gradients.py",
            "claims/test_traits.py",
        ),
    ),
    # tableaus
    Target(
        (
            "schemes/tableaus/families.py",
            "schemes/tableaus/interpolation.py",
            "schemes/tableaus/tableau.py",
            "schemes/tableaus/conditions.py",
            "schemes/tableaus/murua.py",
        ),
        4,
        ("unit/schemes/test_tableaus.py",),
    ),
    # engine
    Target(
        ("engine/newton/convergence.py", "engine/newton/iteration.py", "engine/newton/time_loop.py"),
        7,
        (
            "robustness/test_not_a_number.py",
            "unit/engine/test_engine.py",
            "unit/engine/test_residual_test.py",
            "unit/run/test_dense.py",
            "unit/analysis/test_observe.py",
            "claims/test_black_box.py",
            "claims/test_runge_kutta.py",
            "claims/test_tiers.py",
        ),
    ),
    Target(("engine/newton/markowitz.py",), 4, ("unit/engine/test_pivots.py",)),
    Target(("engine/codegen/instruction_schedule.py",), 4, ("unit/engine/test_order.py", "unit/engine/test_lanes.py")),
    Target(
        ("engine/codegen/predictor_kernel.py", "engine/codegen/newton_kernels.py"),
        3,
        ("unit/engine/test_engine.py", "unit/engine/test_native.py", "claims/test_tiers.py"),
    ),
    Target(
        ("engine/observables/drift_monitor.py",),
        4,
        (
            "robustness/test_not_a_number.py",
            "unit/analysis/test_verdicts.py",
            "unit/analysis/test_observe.py",
            "claims/test_conservation.py",
        ),
    ),
    Target(("engine/codegen/ir_emitter.py",), 4, ("unit/engine/test_lanes.py", "unit/engine/test_native.py")),
    Target(("engine/steppers/variable_order_radau.py",), 3, ("claims/test_radau.py",)),
    Target(("engine/taylor/stepper.py", "engine/taylor/kernels.py"), 3, ("claims/test_taylor.py",)),
    Target(
        (
            "engine/ensemble/lane_loop.py",
            "engine/ensemble/lane_run.py",
            "engine/ensemble/monitor_kernel.py",
            "run/ensemble/run.py",
        ),
        3,
        (
            "unit/engine/test_lanes.py",
            "robustness/test_not_a_number.py",
            "unit/run/test_ensemble.py",
            "unit/run/test_ensemble_stores.py",
            "unit/run/test_ensemble_of_trees.py",
        ),
    ),
    Target(("expressions/graph/roundoff.py",), 4, ("unit/expressions/test_roundoff.py",)),
    Target(("expressions/graph/increments.py",), 4, ("unit/expressions/test_increments.py",)),
    # start values
    Target(
        ("models/initialization/dense.py",),
        7,
        ("unit/models/test_starts.py", "unit/models/test_balance.py", "robustness/test_input.py"),
    ),
    Target(("models/initialization/massless.py",), 5, ("unit/models/test_balance.py",)),
    Target(
        ("models/initialization/redundancy.py",),
        3,
        ("robustness/test_input.py", "unit/models/test_starts.py", "unit/models/test_large_start.py"),
    ),
    # results
    Target(("results/dense_output.py",), 6, ("unit/run/test_dense.py", "claims/test_radau.py")),
    Target(("results/recorder.py",), 5, ("unit/results/test_storage.py", "robustness/test_resume.py")),
    Target(
        ("results/storage/checksums.py", "results/storage/hdf5_validation.py", "results/storage/hdf5_heap_check.py"),
        4,
        (
            "unit/results/test_inspection.py",
            "unit/results/test_storage.py",
            "robustness/test_damaged_files.py",
            "robustness/test_hostile_files.py",
        ),
    ),
    Target(("results/storage/journal.py",), 6, ("unit/results/test_journal.py", "robustness/test_survival.py")),
    # control, events, the end of a run
    Target(
        ("run/step_control.py", "run/stepping.py"),
        5,
        (
            "unit/run/test_short.py",
            "unit/run/test_events.py",
            "unit/run/test_dense.py",
            "robustness/test_arguments.py",
            "robustness/test_resume.py",
            "claims/test_runge_kutta.py",
            "claims/test_adaptive.py",
            "claims/test_switched_forces.py",
        ),
    ),
    Target(
        ("run/events/event.py",),
        5,
        (
            "unit/run/test_events.py",
            "unit/run/test_persistent_contact.py",
            "unit/run/test_dense.py",
            "robustness/test_arguments.py",
            "robustness/test_resume.py",
        ),
    ),
    Target(
        ("run/drift_monitor.py",),
        5,
        ("unit/analysis/test_verdicts.py", "robustness/test_not_a_number.py", "robustness/test_resume.py"),
    ),
    Target(("run/fast_path.py",), 2, ("unit/run/test_short.py", "robustness/test_not_a_number.py")),
    Target(("run/contact/rigid_contact.py",), 5, ("unit/run/test_bounce.py", "unit/run/test_persistent_contact.py")),
    Target(
        ("run/contact/contact_dynamics.py", "run/contact/contact_equations.py"),
        6,
        ("unit/run/test_persistent_contact.py", "unit/multibody/test_stops.py"),
    ),
    Target(("multibody/contacts/rigid_contact.py",), 4, ("unit/run/test_persistent_contact.py",)),
    # contacts and beams
    Target(
        ("multibody/contacts/pair_contact.py", "multibody/contacts/dissipation.py"),
        3,
        (
            "unit/multibody/test_contact_laws.py",
            "unit/multibody/test_contact_geometry.py",
            "claims/test_contact_motion.py",
        ),
    ),
    Target(("multibody/contacts/normal_laws/custom.py",), 2, ("unit/multibody/test_contact_laws.py",)),
    Target(
        ("multibody/contacts/geometry/pair_geometry.py",),
        2,
        ("unit/multibody/test_contact_geometry.py", "claims/test_contact_motion.py"),
    ),
    Target(("multibody/beam.py", "multibody/sections.py"), 3, ("unit/multibody/test_beams.py",)),
    # verdicts
    Target(
        ("analysis/conservation.py",),
        7,
        ("unit/analysis/test_verdicts.py", "unit/analysis/test_observe.py", "unit/analysis/test_all_models.py"),
    ),
    Target(
        ("analysis/round_off.py", "analysis/trend.py"),
        3,
        (
            "unit/analysis/test_judging.py",
            "unit/engine/test_element_table.py",
            "unit/analysis/test_observe.py",
            "unit/analysis/test_verdicts.py",
        ),
    ),
    Target(
        ("analysis/accuracy/estimate.py", "analysis/accuracy/richardson.py"),
        3,
        ("unit/analysis/test_judging.py", "claims/test_accuracy.py"),
    ),
    # bodies, joints and forces
    Target(
        ("multibody/point_constraints.py", "multibody/joint.py", "multibody/couplings.py"),
        2,
        ("unit/multibody/test_joints.py", "unit/multibody/test_all_joints.py", "unit/multibody/test_bodies.py"),
    ),
    Target(
        ("multibody/point_forces.py", "multibody/bushings.py", "multibody/joint_forces.py", "run/sampled_control.py"),
        2,
        ("unit/multibody/test_forces.py", "unit/multibody/test_bodies.py", "unit/multibody/test_import_actuators.py"),
    ),
    Target(("multibody/sliding_joint_forces.py",), 2, ("unit/multibody/test_import.py",)),
    Target(("multibody/joint_stops.py",), 2, ("unit/multibody/test_stops.py",)),
    Target(("multibody/penalty_joint.py",), 2, ("unit/multibody/test_holding.py",)),
    Target(
        (
            "schemes/discretization/rigid_body_step.py",
            "schemes/discretization/factored_tangent.py",
            "schemes/discretization/rotor.py",
        ),
        2,
        ("claims/test_frames.py", "claims/test_rotors.py"),
    ),
    # contacts that are looked for
    Target(
        (
            "multibody/contacts/broad_phase.py",
            "multibody/contacts/geometry/sphere.py",
            "multibody/contacts/geometry/box.py",
            "multibody/contacts/geometry/capsule.py",
            "multibody/contacts/normal_laws/hertz.py",
            "multibody/contacts/normal_laws/material.py",
        ),
        1,
        ("unit/multibody/test_contact_laws.py", "unit/multibody/test_contact_geometry.py"),
    ),
    Target(
        ("engine/collision.py", "multibody/contacts/contact_group.py"),
        2,
        ("unit/multibody/test_balls.py", "claims/test_balls_in_a_box.py", "claims/test_group_shapes.py"),
    ),
    # many trajectories, and how they change with parameters
    Target(
        ("engine/codegen/explicit_simd.py", "engine/ensemble/member_ordering.py"),
        2,
        ("unit/engine/test_explicit_lanes.py", "unit/run/test_ensemble.py"),
    ),
    Target(
        ("run/derivatives/gradient.py", "run/derivatives/tape.py", "run/derivatives/sensitivity.py"),
        2,
        ("unit/run/test_gradient.py", "unit/run/test_derivatives.py", "claims/test_ensembles_and_gradients.py"),
    ),
    Target(
        ("results/checkpoint.py", "results/storage/ensemble_zarr.py"),
        2,
        ("unit/results/test_old_files.py", "unit/run/test_ensemble_stores.py", "robustness/test_resume.py"),
    ),
    # sizes of steps, and what happens at events
    Target(
        (
            "engine/newton/step_size_control.py",
            "engine/newton/error_estimate.py",
            "engine/newton/adaptive_step.py",
            "run/initial_step_size.py",
        ),
        3,
        (
            "unit/engine/test_engine.py",
            "unit/run/test_dense.py",
            "claims/test_adaptive_mechanisms.py",
            "claims/test_adaptive.py",
            "claims/test_runge_kutta.py",
            "claims/test_last_steps.py",
        ),
    ),
    Target(
        ("run/events/actions.py",),
        4,
        ("unit/run/test_events.py", "unit/run/test_persistent_contact.py", "robustness/test_arguments.py"),
    ),
    Target(("models/initialization/velocity_projection.py",), 3, ("unit/run/test_events.py",)),
    Target(
        ("analysis/accuracy/refined_runs.py", "analysis/accuracy/indicators.py"),
        2,
        ("unit/analysis/test_judging.py", "claims/test_accuracy.py"),
    ),
    Target(("analysis/energy_balance.py",), 2, ("unit/analysis/test_all_models.py", "unit/analysis/test_verdicts.py")),
)

#: Changes by hand: file, what is there, what is put there instead. All of them must be noticed.
BY_HAND = (
    # schemes
    ("schemes/symplectic/ggl.py", "-e.G(q_bar, 0).T @ x.gam]", "-e.G(old.q, 0).T @ x.gam]"),
    (
        "schemes/symplectic/ggl.py",
        "constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, q_bar, x.v)]",
        "constraint_residuals=[e.g(new.q, t + h) / h, hidden_constraints(e, old.q, x.v)]",
    ),
    (
        "schemes/energy_momentum/ggl_em.py",
        "e.T_v(q0, x.s) - G_mean.T @ x.gam]",
        "e.T_v(q0, x.s) - e.G(new.q, 0).T @ x.gam]",
    ),
    ("schemes/energy_momentum/ggl_em.py", "M_s = (e.T_v(q0, s) + e.T_v(new.q, s)) / 2", "M_s = e.T_v(new.q, s)"),
    (
        "schemes/energy_momentum/livens_em.py",
        "supplied = h * ca.dot(F, v_m) + dV_t",
        "supplied = h * ca.dot(F, old.v) + dV_t",
    ),
    (
        "schemes/energy_momentum/livens_em.py",
        "e.F(q_m, v_m, t + h / 2), e.R_v(q_m, v_m, t + h / 2)",
        "e.F(q_m, v_m, t), e.R_v(q_m, v_m, t)",
    ),
    # dense output one row short
    (
        "results/dense_output.py",
        "n_nodes = (order + 2) // 2 + 1 if derivatives is not None else order + 2",
        "n_nodes = (order + 2) // 2 if derivatives is not None else order + 2",
    ),
    (
        "results/dense_output.py",
        "n_nodes = (order + 2) // 2 + 1 if derivatives is not None else order + 2",
        "n_nodes = (order + 2) // 2 + 1 if derivatives is not None else order + 1",
    ),
    # round-off limits that are too kind
    ("expressions/graph/roundoff.py", "UNIT_ROUNDOFF = 2.0**-53", "UNIT_ROUNDOFF = 1000 * 2.0**-53"),
    ("analysis/round_off.py", "np.finfo(float).eps * self._largest", "1000 * np.finfo(float).eps * self._largest"),
    ("engine/newton/convergence.py", "MAX_CURVATURE_RESIDUAL = 1e6", "MAX_CURVATURE_RESIDUAL = 1e12"),
    # what is not a number
    ("engine/newton/iteration.py", "return largest if total == total else total", "return largest"),
    # energy
    ("run/drift_monitor.py", "_BLOW_UP_FACTOR = 1e6", "_BLOW_UP_FACTOR = 1e12"),
    (
        "run/drift_monitor.py",
        "return abs(initial_energy) if abs(initial_energy) > 1e-3 * magnitude else magnitude",
        "return abs(initial_energy)",
    ),
    # files
    ("results/storage/checksums.py", "!= expected:", "== -1:"),
    ("results/storage/checksums.py", "stop - first_block * block_size]", "stop + first_block * block_size]"),
    # many trajectories at once
    (
        "engine/ensemble/lane_loop.py",
        "norm_prev = work + (3 * n + 5) * width",
        "norm_prev = work + (2 * n + 5) * width",
    ),
    (
        "engine/ensemble/lane_loop.py",
        "n_rejected_predictions += predictor_ok[i] == 0.0",
        "n_rejected_predictions += predictor_ok[i] != 0.0",
    ),
    (
        "engine/ensemble/lane_loop.py",
        "m = min(first_member + j, members.n_members - 1)",
        "m = min(first_member + j, members.n_members)",
    ),
    # bodies and what acts between them
    (
        "multibody/point_forces.py",
        "-k.constant * k.mass * k.other / m.sqrt(",
        "-k.constant * k.mass * k.mass / m.sqrt(",
    ),
    (
        "multibody/point_forces.py",
        "lambda w, k: 2 * k.stiffness * m.dot(w, w)",
        "lambda w, k: k.stiffness * m.dot(w, w)",
    ),
    ("multibody/joint_stops.py", "self.dimension = restitution, 0.0", "self.dimension = 1.0, 0.0"),
    ("multibody/joint_stops.py", "closed = value <= _CLOSED_TOL", "closed = False"),
    (
        "multibody/joint_forces.py",
        "return [-factor * sine, factor * cosine]",
        "return [factor * sine, factor * cosine]",
    ),
    (
        "multibody/contacts/broad_phase.py",
        "cell = 2 * float(bounding_radius.max()) + max_gap",
        "cell = float(bounding_radius.max()) + max_gap",
    ),
    (
        "engine/collision.py",
        "friction = p[4] * elastic /",
        "friction = p[4] * normal_force /",
    ),
    (
        "engine/collision.py",
        "if largest == largest and not displacement2 <= largest:",
        "if not displacement2 <= largest:",
    ),
    # controllers, and members that fail
    ("run/sampled_control.py", "return min(count - step % count", "return max(count - step % count"),
    (
        "run/sampled_control.py",
        "measured, self._states[i].copy())",
        "measured, controller.state.copy())",
    ),
    (
        "engine/ensemble/lane_run.py",
        "valid_until[lane] = int(np.argmin(finite)) - 1",
        "valid_until[lane] = int(np.argmin(finite))",
    ),
    # a run that was interrupted goes on where it was
    ("results/recorder.py", '"step": self._step}', '"step": 0}'),
)
