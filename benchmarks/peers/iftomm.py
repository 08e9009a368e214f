"""Mechanisms of the IFToMM benchmark in other codes, from the same `Multibody` models; prints one line of JSON.

Each code uses the largest step ``h/2^n`` whose final error is within the tolerance.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.clock import seconds
from benchmarks.peers.iftomm_drawings import benchmark_mechanism
from livens.expressions.parameters import ParameterNamespace
from livens.models.element import Element
from livens.multibody.body import Marker
from livens.multibody.multibody import Multibody

#: Maximal number of step halvings.
_HALVINGS = 10
#: Exudyn names of the parameters of springs and dampers.
_SPRING = dict(stiffness="stiffness", damping="viscosity", referenceLength="length")


def in_exudyn(mb: Multibody, output: Output, t_end: float) -> Callable[[float], np.ndarray]:
    """Return the final points as a function of h: planar bodies with 3 coordinates, others with Euler parameters."""
    import exudyn

    items: Any = importlib.import_module("exudyn.itemInterface")  # untyped
    is_planar, zero = mb.dimension == 2, [0.0, 0.0, 0.0]
    poses = _states(mb)
    container: Any = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    body_numbers = {"ground": ground}
    gravity = [*(np.zeros(mb.dimension) if mb.gravity is None else mb.gravity), 0.0][:3]
    for name, part in mb.bodies.items():
        position, R, velocity, omega = poses[name]
        assert part.element is not None
        inertia_parameters, mass = part.element.parameters.values, part.element.mass
        if is_planar:
            angle = float(np.arctan2(R[1, 0], R[0, 0]))
            node = system.AddNode(
                items.Rigid2D(
                    referenceCoordinates=[*position[:2], angle], initialVelocities=[*velocity[:2], float(omega[2])]
                )
            )
            body = items.RigidBody2D(mass=mass, inertia=float(inertia_parameters["moment"]), nodeNumber=node)
            body_numbers[name] = system.AddObject(body)
            centre = system.AddMarker(items.MarkerBodyPosition(bodyNumber=body_numbers[name]))
            system.AddLoad(items.Force(markerNumber=centre, loadVector=[mass * g for g in gravity]))
        else:
            J = np.trace(inertia_parameters["euler"]) * np.eye(3) - inertia_parameters["euler"]
            body_numbers[name] = system.CreateRigidBody(
                referencePosition=position,
                referenceRotationMatrix=R,
                initialVelocity=velocity,
                initialAngularVelocity=omega,
                inertia=importlib.import_module("exudyn.rigidBodyUtilities").RigidBodyInertia(mass, J),
                gravity=gravity,
            )
    for joint in mb.joints.values():
        sides = [(joint.body_a, joint.parameters["X"]), (joint.body_b, joint.parameters["Y"])]
        if is_planar:
            ends = [
                system.AddMarker(
                    items.MarkerBodyRigid(bodyNumber=body_numbers[part.name], localPosition=[*map(float, X), 0.0])
                )
                for part, X in sides
            ]
            system.AddObject(items.RevoluteJoint2D(markerNumbers=ends))
        else:
            position, R, _, _ = poses.get(joint.body_b.name, (np.zeros(3), np.eye(3), zero, zero))
            make = {"revolute": system.CreateRevoluteJoint, "prismatic": system.CreatePrismaticJoint}[joint.type_name]
            make(
                bodyNumbers=[body_numbers[part.name] for part, _ in sides],
                position=position + R @ joint.parameters["Y"],
                axis=R @ joint.parameters["B"][:, 2],
                useGlobalFrame=True,
            )

    def marker(part: str, local_position: Any) -> Any:
        position_3d = [*map(float, local_position), *([0.0] if is_planar else [])]
        return system.AddMarker(items.MarkerBodyRigid(bodyNumber=body_numbers[part], localPosition=position_3d))

    for name, (element_type, definition) in mb._definitions.items():
        values = mb._force_elements[name].parameters.values
        if element_type == "motor":  # constant torque in a joint with the ground
            rotor_marker = marker(definition[0].body_b.name, np.zeros(mb.dimension))
            system.AddLoad(
                items.LoadTorqueVector(markerNumber=rotor_marker, loadVector=[0, 0, torque(mb._force_elements[name])])
            )
            continue
        points = [
            marker(final_output.body.name, final_output.local_position)
            if isinstance(final_output, Marker)
            else marker("ground", final_output)
            for final_output in definition
        ]
        spring_parameters = {
            exudyn_name: float(values[livens_name])
            for exudyn_name, livens_name in _SPRING.items()
            if livens_name in values
        }
        system.AddObject(items.ObjectConnectorSpringDamper(markerNumbers=points, **spring_parameters))
    sensors = [
        system.AddSensor(
            items.SensorBody(
                bodyNumber=body_numbers[output.body],
                localPosition=[*map(float, local_position), *([0.0] if is_planar else [])],
                storeInternal=True,
                outputVariableType=exudyn.OutputVariableType.Position,
            )
        )
        for local_position in output.local_positions
    ]
    system.Assemble()

    def final_output(h: float) -> np.ndarray:
        settings: Any = exudyn.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = round(t_end / h), t_end, 0
        integration.generalizedAlpha.spectralRadius = 0.9
        if is_planar:
            integration.newton.useModifiedNewton = True
            settings.linearSolver.solverType = exudyn.LinearSolverType.EXUdense
        else:  # redundant constraint: the Jacobian is singular everywhere
            settings.linearSolverType = exudyn.LinearSolverType.EigenDense
            settings.linearSolverSettings.ignoreSingularJacobian = True
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = h
        try:
            system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.GeneralizedAlpha)
        except exudyn.SolverError:  # Newton failure with long steps
            return np.full((len(sensors), mb.dimension), np.nan)
        return np.array([system.GetSensorStoredData(sensor)[-1, 1 : 1 + mb.dimension] for sensor in sensors])

    return final_output


def in_mujoco(mb: Multibody, output: Output, t_end: float) -> Callable[[float], np.ndarray]:
    """Return the final points as a function of h; loops are closed by soft constraints as stiff as the step allows."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        mb.to_mjcf(Path(folder) / "drawn.xml")
        model = mujoco.MjModel.from_xml_path(str(Path(folder) / "drawn.xml"))
    local_positions = np.zeros((len(output.local_positions), 3))
    local_positions[:, : mb.dimension] = output.local_positions
    torques = [
        torque(mb._force_elements[name])
        for name, (element_type, _) in mb._definitions.items()
        if element_type == "motor"
    ]

    def final_output(h: float) -> np.ndarray:
        model.opt.timestep, model.opt.integrator = h, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        model.eq_solref[:], model.eq_solimp[:, :3] = [2 * h, 1.0], [0.9999, 0.9999, 1e-3]
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.ctrl[:] = torques
        mujoco.mj_step(model, data, round(t_end / h))
        mujoco.mj_forward(model, data)
        body = data.body(output.body)
        return np.asarray(body.xpos + local_positions @ body.xmat.reshape(3, 3).T)[:, : mb.dimension]

    return final_output


def torque(motor: Element) -> float:
    """Return the torque of a motor with a constant law."""
    through: Any = motor.functions["forces"]
    return float(through.energy([1.0, 0.0], [0.0, 0.0], 0.0, ParameterNamespace(motor.parameters.values))[1])


def _states(mb: Multibody) -> dict[str, tuple[Any, Any, Any, Any]]:
    """Return initial positions, rotation matrices, velocities and angular velocities of all bodies."""
    from livens.multibody.exports.mjcf import body_states

    return {
        name: (x.position, x.rotation, x.velocity, x.omega) for name, x in body_states(mb, *mb.initial_state).items()
    }


@dataclass(frozen=True)
class Output:
    """Final output: a point of a body, or a rotation angle given by two points."""

    body: str
    local_positions: list[np.ndarray]

    @classmethod
    def of(cls, mb: Multibody, name: str) -> Output:
        body, _, point = name.partition(".")
        part = mb.bodies[body]
        if point == "angle":
            return cls(body, [np.zeros(mb.dimension), np.eye(mb.dimension)[0]])
        return cls(body, [part.markers["centre" if point == "position" else point].local_position])

    def error(self, points: np.ndarray, exact: Any) -> float:
        """Return the error of the output; angles modulo a full turn."""
        if len(self.local_positions) == 1:
            return float(np.abs(points[0] - exact).max())
        x, y = points[1, :2] - points[0, :2]
        angle_error = float(np.arctan2(y, x)) - float(np.ravel(exact)[0])
        return float(abs(np.arctan2(np.sin(angle_error), np.cos(angle_error)))) if np.isfinite(angle_error) else np.inf


def main(code: str, problem: str, output: str, exact: list[float], tolerance: float, h: float, t_end: float) -> Any:
    mb = benchmark_mechanism(problem)
    measured_output = Output.of(mb, output)
    make: Callable[..., Callable[[float], np.ndarray]] = {"exudyn": in_exudyn, "mujoco": in_mujoco}[code]
    final_output = make(mb, measured_output, t_end)
    for _ in range(_HALVINGS):
        error = measured_output.error(final_output(h), exact)
        if error <= tolerance:
            break
        h /= 2
    took = seconds(lambda: final_output(h))
    return {"peer": code, "h": h, "error": error, "seconds": took, "us_per_step": took * h / t_end * 1e6}


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
