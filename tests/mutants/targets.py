"""Which tests claim to prove which part of the source, and changes that were thought of by hand."""

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
        ("schemes/livens_em.py", "schemes/livens_midpoint.py", "schemes/livens_variational.py"),
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
        ("schemes/ggl.py", "schemes/ggl_em.py"),
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
        ("schemes/livens_em_full.py", "schemes/livens_em_nullspace.py"),
        3,
        (
            "claims/test_em_variants.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        (
            "schemes/lobatto_pair.py",
            "schemes/murua.py",
            "schemes/recipes/partitioned.py",
            "schemes/recipes/relations.py",
        ),
        4,
        ("claims/test_partitioned.py", "claims/test_runge_kutta.py", "unit/run/test_dense.py", "claims/test_traits.py"),
    ),
    Target(
        ("schemes/recipes/stages.py",),
        4,
        ("claims/test_runge_kutta.py", "unit/run/test_dense.py", "claims/test_traits.py"),
    ),
    Target(
        ("schemes/hamilton.py", "schemes/symplectic_euler.py", "schemes/stormer_verlet.py", "schemes/variational.py"),
        3,
        (
            "claims/test_maps.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/recipes/composition.py",),
        3,
        (
            "claims/test_composition.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/semi_explicit.py",),
        3,
        (
            "claims/test_black_box.py",
            "claims/test_semi_explicit.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/sundman.py", "schemes/sundman_doubled.py", "schemes/step_density.py"),
        2,
        (
            "unit/schemes/test_scaling.py",
            "claims/test_nambu_schemes.py",
            "claims/test_adaptive.py",
            "claims/test_traits.py",
        ),
    ),
    Target(
        ("schemes/nambu_splitting.py",),
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
            "schemes/gradients/calculus.py",
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
            "schemes/tableaus/polynomials.py",
            "schemes/tableaus/tableau.py",
            "schemes/tableaus/conditions.py",
            "schemes/tableaus/murua.py",
        ),
        4,
        ("unit/schemes/test_tableaus.py",),
    ),
    # engine
    Target(
        ("engine/newton.py", "engine/loop.py"),
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
    Target(("engine/pivots.py",), 4, ("unit/engine/test_pivots.py",)),
    Target(("engine/order.py",), 4, ("unit/engine/test_order.py", "unit/engine/test_lanes.py")),
    Target(
        ("engine/predictor.py", "engine/correction.py"),
        3,
        ("unit/engine/test_engine.py", "unit/engine/test_native.py", "claims/test_tiers.py"),
    ),
    Target(
        ("engine/fold.py",),
        4,
        (
            "robustness/test_not_a_number.py",
            "unit/analysis/test_verdicts.py",
            "unit/analysis/test_observe.py",
            "claims/test_conservation.py",
        ),
    ),
    Target(("engine/emit.py",), 4, ("unit/engine/test_lanes.py", "unit/engine/test_native.py")),
    Target(("engine/variable_order.py",), 3, ("claims/test_radau.py",)),
    Target(("engine/series/stepper.py", "engine/series/kernels.py"), 3, ("claims/test_taylor.py",)),
    Target(
        ("engine/lanes.py", "engine/batch.py", "engine/watch.py", "run/together.py"),
        3,
        (
            "unit/engine/test_lanes.py",
            "robustness/test_not_a_number.py",
            "unit/run/test_ensemble.py",
            "unit/run/test_ensemble_stores.py",
        ),
    ),
    Target(("expressions/graph/roundoff.py",), 4, ("unit/expressions/test_roundoff.py",)),
    Target(("expressions/graph/increments.py",), 4, ("unit/expressions/test_increments.py",)),
    # start values
    Target(
        ("models/start.py",),
        7,
        ("unit/models/test_starts.py", "unit/models/test_balance.py", "robustness/test_input.py"),
    ),
    Target(("models/balance.py",), 5, ("unit/models/test_balance.py",)),
    Target(
        ("models/redundancy.py",),
        3,
        ("robustness/test_input.py", "unit/models/test_starts.py", "unit/models/test_large_start.py"),
    ),
    # results
    Target(("results/dense.py",), 6, ("unit/run/test_dense.py", "claims/test_radau.py")),
    Target(("results/recorder.py",), 5, ("unit/results/test_storage.py", "robustness/test_resume.py")),
    Target(
        ("results/checksums.py", "results/inspection.py", "results/heaps.py"),
        4,
        (
            "unit/results/test_inspection.py",
            "unit/results/test_storage.py",
            "robustness/test_damaged_files.py",
            "robustness/test_hostile_files.py",
        ),
    ),
    Target(("results/journal.py",), 6, ("unit/results/test_journal.py", "robustness/test_survival.py")),
    # control, events, the end of a run
    Target(
        ("run/control.py", "run/march.py"),
        5,
        (
            "unit/run/test_short.py",
            "unit/run/test_events.py",
            "unit/run/test_dense.py",
            "robustness/test_arguments.py",
            "robustness/test_resume.py",
            "claims/test_runge_kutta.py",
            "claims/test_adaptive.py",
        ),
    ),
    Target(
        ("run/events.py",),
        5,
        (
            "unit/run/test_events.py",
            "unit/run/test_landing.py",
            "unit/run/test_dense.py",
            "robustness/test_arguments.py",
            "robustness/test_resume.py",
        ),
    ),
    Target(
        ("run/extremes.py",),
        5,
        ("unit/analysis/test_verdicts.py", "robustness/test_not_a_number.py", "robustness/test_resume.py"),
    ),
    Target(("run/short.py",), 2, ("unit/run/test_short.py", "robustness/test_not_a_number.py")),
    Target(("run/bounce.py",), 5, ("unit/run/test_bounce.py", "unit/run/test_landing.py")),
    Target(("run/resting.py",), 6, ("unit/run/test_landing.py",)),
    Target(("multibody/contacts/landing.py",), 4, ("unit/run/test_landing.py",)),
    # contacts and beams
    Target(
        ("multibody/contacts/contact.py", "multibody/contacts/friction.py"),
        3,
        (
            "unit/multibody/test_contact_laws.py",
            "unit/multibody/test_contact_geometry.py",
            "claims/test_contact_motion.py",
        ),
    ),
    Target(("multibody/contacts/laws/own.py",), 2, ("unit/multibody/test_contact_laws.py",)),
    Target(
        ("multibody/contacts/geometry/base.py",),
        2,
        ("unit/multibody/test_contact_geometry.py", "claims/test_contact_motion.py"),
    ),
    Target(("multibody/beam.py", "multibody/sections.py"), 3, ("unit/multibody/test_beams.py",)),
    # verdicts
    Target(
        ("analysis/verdicts.py",),
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
        ("analysis/accuracy/estimate.py", "analysis/accuracy/verdict.py"),
        3,
        ("unit/analysis/test_judging.py", "claims/test_accuracy.py"),
    ),
    # bodies, joints and forces
    Target(
        ("multibody/joints.py", "multibody/joint.py", "multibody/couplings.py"),
        2,
        ("unit/multibody/test_joints.py", "unit/multibody/test_all_joints.py", "unit/multibody/test_bodies.py"),
    ),
    Target(
        ("multibody/forces.py", "multibody/bushings.py", "multibody/actuators.py", "run/sampling.py"),
        2,
        ("unit/multibody/test_forces.py", "unit/multibody/test_bodies.py"),
    ),
    Target(("multibody/sliding.py",), 2, ("unit/multibody/test_import.py",)),
    Target(("multibody/stops.py",), 2, ("unit/multibody/test_stops.py",)),
    Target(("multibody/holding.py",), 2, ("unit/multibody/test_holding.py",)),
    Target(
        ("schemes/recipes/frame_bodies.py", "schemes/recipes/frame_chains.py", "schemes/recipes/rotor_body.py"),
        2,
        ("claims/test_frames.py", "claims/test_rotors.py"),
    ),
    # contacts that are looked for
    Target(
        (
            "multibody/contacts/near.py",
            "multibody/contacts/geometry/sphere.py",
            "multibody/contacts/geometry/box.py",
            "multibody/contacts/geometry/capsule.py",
            "multibody/contacts/laws/hertz.py",
            "multibody/contacts/laws/material.py",
        ),
        1,
        ("unit/multibody/test_contact_laws.py", "unit/multibody/test_contact_geometry.py"),
    ),
    Target(
        ("engine/found_contacts.py", "multibody/contacts/crowd.py", "engine/crowd.py"),
        2,
        ("unit/multibody/test_balls.py", "claims/test_crowds.py", "claims/test_drawn_crowds.py"),
    ),
    # many trajectories, and how they change with parameters
    Target(
        ("engine/explicit_lanes.py", "engine/member_order.py"),
        2,
        ("unit/engine/test_explicit_lanes.py", "unit/run/test_ensemble.py"),
    ),
    Target(
        ("run/gradient.py", "run/tape.py", "run/sensitivity.py"),
        2,
        ("unit/run/test_gradient.py", "unit/run/test_derivatives.py", "claims/test_ensembles_and_gradients.py"),
    ),
    Target(
        ("results/checkpoint.py", "results/ensemble_store.py"),
        2,
        ("unit/results/test_old_files.py", "unit/run/test_ensemble_stores.py", "robustness/test_resume.py"),
    ),
    # sizes of steps, and what happens at events
    Target(
        ("engine/step_size.py", "run/first_step.py"),
        3,
        (
            "unit/engine/test_engine.py",
            "unit/run/test_dense.py",
            "claims/test_adaptive.py",
            "claims/test_runge_kutta.py",
            "claims/test_last_steps.py",
        ),
    ),
    Target(
        ("run/actions.py",),
        4,
        ("unit/run/test_events.py", "unit/run/test_landing.py", "robustness/test_arguments.py"),
    ),
    Target(("models/kicks.py",), 3, ("unit/run/test_events.py",)),
    Target(
        ("analysis/accuracy/companions.py", "analysis/accuracy/witnesses.py"),
        2,
        ("unit/analysis/test_judging.py", "claims/test_accuracy.py"),
    ),
    Target(("analysis/energy_balance.py",), 2, ("unit/analysis/test_all_models.py", "unit/analysis/test_verdicts.py")),
)

#: Changes by hand: file, what is there, what is put there instead. All of them must be noticed.
BY_HAND = (
    # schemes
    ("schemes/ggl.py", "-e.G(qb, 0).T @ x.gam],\n", "-e.G(old.q, 0).T @ x.gam],\n"),
    (
        "schemes/ggl.py",
        "constraints=[e.g(new.q, t + h) / h, velocity_constraints(e, qb, x.v)]",
        "constraints=[e.g(new.q, t + h) / h, velocity_constraints(e, old.q, x.v)]",
    ),
    ("schemes/ggl_em.py", "e.T_v(q0, x.s) - G_mean.T @ x.gam]", "e.T_v(q0, x.s) - e.G(new.q, 0).T @ x.gam]"),
    ("schemes/ggl_em.py", "M_s = (e.T_v(q0, s) + e.T_v(new.q, s)) / 2", "M_s = e.T_v(new.q, s)"),
    ("schemes/livens_em.py", "supplied = h * ca.dot(F, v_m) + V_by_t", "supplied = h * ca.dot(F, old.v) + V_by_t"),
    (
        "schemes/livens_em.py",
        "e.F(q_m, v_m, t + h / 2), e.R_v(q_m, v_m, t + h / 2)",
        "e.F(q_m, v_m, t), e.R_v(q_m, v_m, t)",
    ),
    # dense output one row short
    (
        "results/dense.py",
        "wanted = (order + 2) // 2 + 1 if slopes is not None else order + 2",
        "wanted = (order + 2) // 2 if slopes is not None else order + 2",
    ),
    (
        "results/dense.py",
        "wanted = (order + 2) // 2 + 1 if slopes is not None else order + 2",
        "wanted = (order + 2) // 2 + 1 if slopes is not None else order + 1",
    ),
    # round-off limits that are too kind
    ("expressions/graph/roundoff.py", "UNIT = 2.0**-53", "UNIT = 1000 * 2.0**-53"),
    ("analysis/round_off.py", "np.finfo(float).eps * self._largest", "1000 * np.finfo(float).eps * self._largest"),
    ("engine/newton.py", "CURVATURE_LIMIT = 1e6", "CURVATURE_LIMIT = 1e12"),
    # what is not a number
    ("engine/newton.py", "return worst if total == total else total", "return worst"),
    # energy
    ("run/extremes.py", "_EXPLODED = 1e6", "_EXPLODED = 1e12"),
    ("run/extremes.py", "return abs(start) if abs(start) > 1e-3 * magnitude else magnitude", "return abs(start)"),
    # files
    ("results/checksums.py", "!= wanted:", "== -1:"),
    ("results/checksums.py", "last - begin * block]", "last + begin * block]"),
    # many trajectories at once
    ("engine/lanes.py", "last = work + (3 * n + 5) * width", "last = work + (2 * n + 5) * width"),
    ("engine/lanes.py", "rough += trusted[i] == 0.0", "rough += trusted[i] != 0.0"),
    ("engine/lanes.py", "m = min(first + j, given.count - 1)", "m = min(first + j, given.count)"),
    # bodies and what acts between them
    ("multibody/forces.py", "-k.constant * k.mass * k.other / m.sqrt(", "-k.constant * k.mass * k.mass / m.sqrt("),
    ("multibody/forces.py", "lambda w, k: 2 * k.stiffness * m.dot(w, w)", "lambda w, k: k.stiffness * m.dot(w, w)"),
    ("multibody/stops.py", "back = self.stop.restitution * rate", "back = rate"),
    ("multibody/stops.py", "lands = 2 * back < _STEPS * h * pressed", "lands = False"),
    ("multibody/actuators.py", "return [-share * w[1], share * w[0]]", "return [share * w[1], share * w[0]]"),
    ("multibody/contacts/near.py", "cell = 2 * float(reach.max()) + within", "cell = float(reach.max()) + within"),
    ("engine/crowd.py", "        f[o + 3] += arm_j * tx\n", "        f[o + 3] -= arm_j * tx\n"),
    ("engine/crowd.py", "rub = t.laws[3] * elastic /", "rub = t.laws[3] * whole /"),
    (
        "engine/found_contacts.py",
        "if most == most and not square <= most:  # what is not a number has moved",
        "if not square <= most:  # what is not a number has moved",
    ),
    # controllers, and members that fail
    ("run/sampling.py", "return min(count - step % count", "return max(count - step % count"),
    ("run/sampling.py", "known = (self._states[i].copy(),)", "known = (one.state.copy(),)"),
    ("engine/batch.py", "until[lane] = int(np.argmin(finite)) - 1", "until[lane] = int(np.argmin(finite))"),
    # a run that was interrupted goes on where it was
    ("results/recorder.py", '"step": self._step}', '"step": 0}'),
)
