"""Robot arm from a URDF file with PD controllers."""

from pathlib import Path

Path("arm.urdf").write_text("""<robot name="arm">
  <link name="floor"/>
  <link name="column">
    <inertial><origin xyz="0 0 0.2"/><mass value="4"/>
      <inertia ixx="0.06" iyy="0.06" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.2"/>
      <geometry><cylinder radius="0.08" length="0.4"/></geometry></visual>
  </link>
  <link name="boom">
    <inertial><origin xyz="0.3 0 0"/><mass value="2"/>
      <inertia ixx="0.004" iyy="0.06" izz="0.06" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0.3 0 0"/><geometry><box size="0.6 0.06 0.06"/></geometry></visual>
  </link>
  <joint name="yaw" type="continuous">
    <parent link="floor"/><child link="column"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="lift" type="continuous">
    <parent link="column"/><child link="boom"/><origin xyz="0 0 0.4"/><axis xyz="0 -1 0"/>
  </joint>
</robot>""")

import livens as lv  # noqa: E402
from livens import math as m  # noqa: E402

arm = lv.Multibody.from_urdf("arm.urdf")
arm.pd(arm.joints["yaw"], kp=60, kd=12, reference=lambda t: 1.2 * m.tanh(2 * t) ** 2, name="yaw servo")
arm.pd(arm.joints["lift"], kp=200, kd=30, reference=lambda t: 0.6 * m.tanh(2 * t) ** 2, name="lift servo")
run = arm.simulate(t_end=4, h=2e-3)
print(f"yaw {run['yaw.angle'][-1]:.3f} rad, lift {run['lift.angle'][-1]:.3f} rad")
assert abs(run["yaw.angle"][-1] - 1.2) < 1e-2
run.animate("arm.html", frames=120)
