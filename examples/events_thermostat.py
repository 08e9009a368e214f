"""Thermostat: events that change a parameter."""

import livens as lv

heater = lv.FirstOrder("T", rhs=lambda x, k: [k.power - x[0]], parameters=dict(power=2.0))
off = lv.Event(lambda x: x[0] - 1.2, name="off", direction=1, action=lambda: {"parameters": {"power": 0.0}})
on = lv.Event(lambda x: x[0] - 0.8, name="on", direction=-1, action=lambda: {"parameters": {"power": 2.0}})
run = lv.simulate(heater, x0=[0.0], h=0.01, t_end=5.0, events=[off, on])
print([(event.name, round(event.t, 4)) for event in run.events[:4]])
assert run.x.max() < 1.2 + 1e-9
