"""Builder methods for robot description files: URDF, SDF and MJCF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from livens.errors import InputError
from livens.multibody.builder.base import ModelBase
from livens.validation import check_bool, check_choice, check_path, check_positive

if TYPE_CHECKING:  # importers are imported on demand
    from livens.multibody.imports.robot_description import RobotDescription
    from livens.multibody.multibody import Multibody


class RobotFileMethods(ModelBase):
    """Methods of `livens.Multibody` that read and write robot description files."""

    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        *,
        base: str = "fixed",
        packages: Mapping[str, str | Path] | None = None,
        limit_stiffness: float | None = None,
        inertia: str = "error",
        strict: bool = True,
        contacts: Mapping[str, object] | None = None,
        show_collisions: bool = False,
    ) -> Multibody:
        """Read a robot from a URDF file, or from a xacro file if the package `xacro` is installed.

        The reference configuration has all joint coordinates at zero. A ``<mimic>`` joint becomes an exact coupling.

        Parameters
        ----------
        path : str or Path
            URDF file; a file with the suffix ``.xacro`` is expanded first.
        base : {"fixed", "floating"}, default "fixed"
            Whether the root link belongs to the ground or is a free body.
        packages : mapping of str to path, optional
            Folders of the packages in ``package://`` addresses. By default they are searched above the file.
        limit_stiffness : float, optional
            Stiffness of the joint limits in N m/rad or N/m. Without it, joint limits are ignored.
        inertia : {"error", "balance"}, default "error"
            Treatment of inertia tensors that no body can have, as their principal moments violate the triangle
            inequality: an error, or three equal moments with the same sum (as MuJoCo's ``balanceinertia``).
        strict : bool, default True
            Raise an error for content that changes the motion and is not supported. If False, such content is ignored
            and listed in ``import_warnings``.
        contacts : mapping, optional
            Contacts of the collision geometry, with a horizontal ground. Keys: ``stiffness`` in N/m, or
            ``"solref"`` (from solref, solimp and the mass of the model); ``dissipation`` in s/m (1.0); ``friction``
            (1.0); ``pairs``, "ground" (default, with static shapes) or "all". Without it, bodies do
            not collide.
        show_collisions : bool, default False
            Whether to draw collision geometry of links that have visual geometry.

        Returns
        -------
        Multibody
            Model of the robot; ``import_warnings`` lists the content of the file that is ignored.

        Raises
        ------
        InputError
            If the file is not a valid URDF file, or if no link can move.
        """
        from livens.multibody.imports.urdf import read_urdf

        file = check_path("path", path)
        check_bool("show_collisions", show_collisions)
        check_choice("base", base, ("fixed", "floating"))
        robot = read_urdf(
            file, base, _package_paths(packages), check_bool("strict", strict), contacts is not None, show_collisions
        )
        return cls._from_robot(robot, limit_stiffness, inertia, contacts)

    @classmethod
    def from_sdf(
        cls,
        path: str | Path,
        *,
        packages: Mapping[str, str | Path] | None = None,
        limit_stiffness: float | None = None,
        inertia: str = "error",
        strict: bool = True,
        contacts: Mapping[str, object] | None = None,
        show_collisions: bool = False,
    ) -> Multibody:
        """Read a robot from an SDF file (Gazebo) with one model.

        The reference configuration is that of the file. Links without a joint to a parent are free bodies, unless the
        model is static. A joint of type ball or fixed may close a loop.

        Parameters
        ----------
        path : str or Path
            SDF file.
        packages : mapping of str to path, optional
            Folders of the packages in ``package://`` and ``model://`` addresses. By default they are searched above
            the file.
        limit_stiffness : float, optional
            Stiffness of the joint limits in N m/rad or N/m. Without it, joint limits are ignored.
        inertia : {"error", "balance"}, default "error"
            Treatment of inertia tensors that no body can have: an error, or three equal moments with the same sum.
        strict : bool, default True
            Raise an error for content that changes the motion and is not supported. If False, such content is ignored
            and listed in ``import_warnings``.
        contacts : mapping, optional
            Contacts of the collision geometry, see `from_urdf`. Without it, bodies do not collide.
        show_collisions : bool, default False
            Whether to draw collision geometry of links that have visual geometry.

        Returns
        -------
        Multibody
            Model of the robot; ``import_warnings`` lists the content of the file that is ignored.

        Raises
        ------
        InputError
            If the file is not a valid SDF file with one model, or if no link can move.
        """
        from livens.multibody.imports.sdf import read_sdf

        check_bool("show_collisions", show_collisions)
        flags = check_bool("strict", strict), contacts is not None, show_collisions
        robot = read_sdf(check_path("path", path), _package_paths(packages), *flags)
        return cls._from_robot(robot, limit_stiffness, inertia, contacts)

    @classmethod
    def from_mjcf(
        cls,
        path: str | Path,
        *,
        limit_stiffness: float | None = None,
        inertia: str = "error",
        strict: bool = True,
        actuators: bool = True,
        keyframe: str | int | None = None,
        contacts: Mapping[str, object] | None = None,
        show_collisions: bool = False,
    ) -> Multibody:
        """Read a model from an MJCF file (MuJoCo).

        The reference configuration is that of the file. ``equality`` elements become exact constraints.

        Parameters
        ----------
        path : str or Path
            MJCF file.
        limit_stiffness : float, optional
            Stiffness of the joint limits in N m/rad or N/m. Without it, joint limits are ignored.
        inertia : {"error", "balance"}, default "error"
            Treatment of inertia tensors that no body can have, as their principal moments violate the triangle
            inequality: an error, or three equal moments with the same sum (as MuJoCo's ``balanceinertia``).
        strict : bool, default True
            Raise an error for content that changes the motion and is not supported. If False, such content is ignored
            and listed in ``import_warnings``.
        actuators : bool, default True
            Whether to import actuators.
        keyframe : str or int, optional
            Name or number of the stored state of the file that the model starts from, with its controls. By default
            the model starts from the reference configuration at rest.
        contacts : mapping, optional
            Contacts of the collision geometry. Keys: ``stiffness`` in N/m, or
            ``"solref"`` (from solref, solimp and the mass of the model); ``dissipation`` in s/m (1.0); ``friction``
            (that of the file); ``pairs``, "ground" (default, with static shapes) or "all". Without it, bodies do
            not collide.
        show_collisions : bool, default False
            Whether to draw geoms that MuJoCo does not display by default: groups 3 to 5, and opacity 0. Files keep
            collision geometry there. A body without other geoms shows them always.

        Returns
        -------
        Multibody
            Model; ``import_warnings`` lists the content of the file that is ignored.

        Raises
        ------
        InputError
            If the file is not a valid MJCF file, or if no body can move.
        """
        from livens.multibody.imports.mjcf import read_mjcf

        check_bool("show_collisions", show_collisions)
        flags = check_bool("strict", strict), check_bool("actuators", actuators)
        robot = read_mjcf(check_path("path", path), *flags, keyframe, contacts is not None, show_collisions)
        return cls._from_robot(robot, limit_stiffness, inertia, contacts)

    def to_mjcf(self, path: str | Path, *, force: bool = False) -> list[str]:
        """Write the model as an MJCF file (MuJoCo), in its initial configuration.

        The keyframe ``start`` contains the initial velocities. Loop-closing joints become ``equality`` constraints,
        which MuJoCo treats as soft constraints.

        Parameters
        ----------
        path : str or Path
            File to write.
        force : bool, default False
            Whether to replace an existing file.

        Returns
        -------
        list of str
            Content of the model that MJCF cannot represent, such as control laws; also written as comments.

        Raises
        ------
        InputError
            If a joint has no counterpart in MuJoCo, or if the file exists and `force` is False.
        """
        from livens.multibody.exports.mjcf import write_mjcf

        return write_mjcf(cast("Multibody", self), check_path("path", path), check_bool("force", force))

    @classmethod
    def _from_robot(
        cls,
        robot: RobotDescription,
        limit_stiffness: float | None,
        inertia: str,
        contacts: Mapping[str, object] | None = None,
    ) -> Multibody:
        from livens.multibody.imports.collision_geometry import ContactOptions
        from livens.multibody.imports.to_multibody import MultibodyBuilder

        stiffness = None if limit_stiffness is None else check_positive("limit_stiffness", limit_stiffness)
        mb = cast(type["Multibody"], cls)(
            gravity=robot.gravity if robot.gravity.any() else None, name=robot.name or "robot"
        )
        balances = check_choice("inertia", inertia, ("error", "balance")) == "balance"
        MultibodyBuilder(mb, robot, stiffness, balances, ContactOptions.of(contacts)).build()
        if not mb.bodies:
            raise InputError(f"{robot.name}: no body can move, so there is nothing to simulate")
        return mb


def _package_paths(packages: object) -> dict[str, Path] | None:
    if packages is None:
        return None
    if not isinstance(packages, Mapping):
        raise InputError(f"packages must map package names to folders, as {{'name': folder}}, got {packages!r}")
    return {str(name): check_path(f"packages: {name}", folder) for name, folder in packages.items()}
