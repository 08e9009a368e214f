"""Builder methods for couplings of joint coordinates (gears, racks, belts, differentials) and armatures."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.multibody.armature import JointArmature
from livens.multibody.builder.base import ModelBase
from livens.multibody.couplings import Coupling
from livens.multibody.joint import Joint
from livens.types import ArrayLike
from livens.validation import check_array, check_number, check_positive


class CouplingMethods(ModelBase):
    """Methods of `livens.Multibody` that couple joint coordinates and add armatures."""

    def couple(self, name: str, *terms: tuple[Joint, float], coupling_type: str = "coupling") -> Coupling:
        """Add a linear coupling: a weighted sum of joint coordinates stays constant.

        Results: ``name.violation`` and the coupling torque or force in the last joint, ``name.torque`` or
        ``name.force``.

        Parameters
        ----------
        name : str
            Name of the coupling.
        *terms : tuple of (Joint, float)
            Joints and coefficients. The joint coordinate is the angle, or the displacement of joints that only slide.
        coupling_type : str, default "coupling"
            Name of the type in outputs.

        Returns
        -------
        Coupling
            The coupling.

        Raises
        ------
        InputError
            If there are fewer than two different joints, a coefficient is zero, or a joint has no single coordinate.
        """
        self._claim_name(name)
        checked_terms = []
        for term in terms:
            if not isinstance(term, tuple) or len(term) != 2:
                raise InputError(f"{name}: the terms of a coupling are (joint, coefficient), got {term!r}")
            joint, coefficient = term
            self._check_joint(name, joint)
            if not (joint.joint_type.angle or joint.joint_type.slide):
                raise InputError(
                    f"{name}: the {joint.type_name} joint '{joint.name}' has no single angle or displacement"
                )
            value = check_number(f"{name}: the weight of {joint.name}", coefficient)
            if value == 0:
                raise InputError(f"{name}: the weight of '{joint.name}' is zero; remove the joint from the coupling")
            checked_terms.append((joint, "angle" if joint.joint_type.angle else "position", value))
        if len(checked_terms) < 2 or len({joint.name for joint, _, _ in checked_terms}) < len(checked_terms):
            raise InputError(f"{name}: a coupling needs at least two different joints")
        self.couplings[name] = Coupling(name, coupling_type, checked_terms)
        return self.couplings[name]

    def armature(self, joint: Joint, *, inertia: float, name: str | None = None) -> JointArmature:
        """Add the armature of a joint: the reflected inertia of the rotor of a motor and its gearbox.

        The rotor adds ``inertia rate^2 / 2`` to the kinetic energy, and nothing else. The result ``name.torque`` (N m)
        or ``name.force`` (N) is that of its inertia on the joint.

        Parameters
        ----------
        joint : Joint
            Joint with an angle or a displacement.
        inertia : float
            Rotor inertia times the squared gear ratio in kg m^2, or the reflected mass in kg of a joint that slides.
        name : str, optional
            Name; by default that of the joint with " armature".

        Returns
        -------
        JointArmature
            The armature.

        Raises
        ------
        InputError
            If the joint has no single angle or displacement, or has an armature already.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=None)
        >>> rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=3.0, radius=0.01)
        >>> hinge = mb.revolute("hinge", mb.ground, rod, at=[0, 0, 0], axis="z")
        >>> rotor = mb.armature(hinge, inertia=0.5)
        >>> print(f"{mb.mass_matrix([0.0])[0, 0]:.4f}")
        1.5001
        """
        self._check_joint("armature", joint)
        name = f"{joint.name} armature" if name is None else name
        if not (joint.joint_type.angle or joint.joint_type.slide):
            raise InputError(f"{name}: the {joint.type_name} joint '{joint.name}' has no single angle or displacement")
        if joint.armature is not None:
            raise InputError(f"{name}: the joint '{joint.name}' has the armature '{joint.armature.name}' already")
        moment = check_positive(f"{name}: inertia", inertia)
        self._claim_name(name)
        joint.armature = self.armatures[name] = JointArmature(name, joint, moment)
        return joint.armature

    def gear(self, name: str, joint_a: Joint, joint_b: Joint, *, ratio: float) -> Coupling:
        """Add a gear: the second joint rotates by `ratio` times the angle of the first.

        Parameters
        ----------
        name : str
            Name of the gear. Results: ``name.torque`` (N m) in the second joint, ``name.violation``.
        joint_a, joint_b : Joint
            Driving and driven joint, each with an angle.
        ratio : float
            Transmission ratio; negative for external gears.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, joint_a, joint_b)
        return self.couple(
            name, (joint_a, check_number(f"{name}: the ratio", ratio)), (joint_b, -1.0), coupling_type="gear"
        )

    def rack(self, name: str, pinion: Joint, slide: Joint, *, radius: float) -> Coupling:
        """Add a rack and pinion: the slide moves by `radius` times the angle of the pinion.

        Parameters
        ----------
        name : str
            Name of the coupling. Results: ``name.force`` (N) in the slide, ``name.violation``.
        pinion : Joint
            Joint with an angle.
        slide : Joint
            Joint that only slides.
        radius : float
            Pitch radius in m; negative if the rack is on the other side.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_coordinate(name, pinion, "angle")
        self._require_coordinate(name, slide, "slide")
        if slide.joint_type.angle:
            raise InputError(f"{name}: the rack '{slide.name}' must be a joint that only slides")
        return self.couple(
            name, (pinion, check_number(f"{name}: the radius", radius)), (slide, -1.0), coupling_type="rack"
        )

    def belt(self, name: str, joint_a: Joint, joint_b: Joint, *, radii: ArrayLike, crossed: bool = False) -> Coupling:
        """Add a belt drive between two pulleys, without slip.

        Parameters
        ----------
        name : str
            Name of the belt. Results: ``name.torque`` (N m) in the second joint, ``name.violation``.
        joint_a, joint_b : Joint
            Joints of the pulleys, each with an angle.
        radii : array_like of shape (2,)
            Radii of the pulleys in m.
        crossed : bool, default False
            Whether the belt is crossed, so that the pulleys rotate in opposite directions.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, joint_a, joint_b)
        r = check_array(f"{name}: radii", radii, (2,))
        if not np.all(r > 0):
            raise InputError(f"{name}: the radii must be positive, got {r.tolist()}")
        return self.couple(name, (joint_a, r[0]), (joint_b, r[1] if crossed else -r[1]), coupling_type="belt")

    def differential(self, name: str, left: Joint, right: Joint, carrier: Joint) -> Coupling:
        """Add a differential: the carrier rotates by the mean of the angles of two joints.

        Parameters
        ----------
        name : str
            Name of the differential. Results: ``name.torque`` (N m) in the carrier, ``name.violation``.
        left, right : Joint
            Joints of the two output shafts.
        carrier : Joint
            Joint of the carrier.

        Returns
        -------
        Coupling
            The coupling.
        """
        self._require_angles(name, left, right, carrier)
        return self.couple(name, (left, 0.5), (right, 0.5), (carrier, -1.0), coupling_type="differential")

    def _require_angles(self, name: str, *joints: Joint) -> None:
        for joint in joints:
            self._require_coordinate(name, joint, "angle")
