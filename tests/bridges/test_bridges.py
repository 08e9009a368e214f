"""Simulations as layers of JAX and PyTorch. They are large: `make bridges` installs them and runs these tests."""

import numpy as np
import pytest

import livens as lv

PENDULUM = lv.problems.load("simple-pendulum")


def own_gradient(q0, v0, g):
    step = lv.prepare(PENDULUM, h=0.01, t_end=0.5)
    loss = lv.value_and_gradient(lambda q, v: q[0] ** 2 + 0.3 * v[1], every=10)
    return loss(step, q0=q0, v0=v0, parameters={"g": g}, project=True)


def test_a_layer_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed (make bridges)")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    step = lv.prepare(PENDULUM, h=0.01, t_end=0.5)
    simulate = lv.bridges.jax.layer(step, ["q0", "v0", "g"], ["q", "v"], every=10)

    def loss(q0, v0, g):
        q, v = simulate(q0, v0, g)
        return jnp.sum(q[:, 0] ** 2 + 0.3 * v[:, 1])

    at = jnp.array([-1.0, 0.0]), jnp.array([0.0, 0.4]), 9.5
    value, by = own_gradient(*map(np.asarray, at))
    for function in (jax.value_and_grad(loss, argnums=(0, 1, 2)), jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))):
        found, (of_q, of_v, of_g) = function(*at)
        assert float(found) == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(of_q, by.q0, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(of_v, by.v0, rtol=1e-12, atol=1e-14)
        assert float(of_g) == pytest.approx(by.parameters["g"], rel=1e-12)
    many = jax.vmap(lambda g: loss(at[0], at[1], g))(jnp.array([9.0, 9.5]))
    assert float(many[1]) == pytest.approx(value)


def test_kepler_as_jax_has_it():
    """Kepler with a scheme written in lax.scan: equal values and gradients to round-off."""
    jax = pytest.importorskip("jax", reason="JAX is not installed (make bridges)")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    problem = lv.problems.load("kepler")
    h, steps = problem.h, 1000

    def scanned(q, v):
        def force(q):
            return -q / jnp.sum(q * q) ** 1.5

        def one(state, _):
            q, v, f = state
            v = v + h / 2 * f
            q = q + h * v
            f = force(q)
            return (q, v + h / 2 * f, f), None

        return jax.lax.scan(one, (q, v, force(q)), None, length=steps)[0][0][0]

    value, slopes = jax.value_and_grad(scanned, argnums=(0, 1))(jnp.asarray(problem.q0), jnp.asarray(problem.v0))
    step = lv.prepare(problem, "stormer-verlet", t_end=problem.t0 + steps * h)
    found, by = lv.value_and_gradient(lambda q: q[0])(step)
    assert found == pytest.approx(float(value), abs=1e-10)
    np.testing.assert_allclose(by.q0, slopes[0], rtol=1e-9)
    np.testing.assert_allclose(by.v0, slopes[1], rtol=1e-9)


def test_a_layer_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (make bridges)")
    step = lv.prepare(PENDULUM, h=0.01, t_end=0.5)
    simulate = lv.bridges.torch.layer(step, ["q0", "v0", "g"], ["q", "v"], every=10)
    q0 = torch.tensor([-1.0, 0.0], dtype=torch.float64, requires_grad=True)
    v0 = torch.tensor([0.0, 0.4], dtype=torch.float64, requires_grad=True)
    g = torch.tensor(9.5, dtype=torch.float64, requires_grad=True)
    q, v = simulate(q0, v0, g)
    loss = (q[:, 0] ** 2 + 0.3 * v[:, 1]).sum()
    loss.backward()
    value, by = own_gradient(q0.detach().numpy(), v0.detach().numpy(), 9.5)
    assert loss.item() == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(q0.grad, by.q0, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(v0.grad, by.v0, rtol=1e-12, atol=1e-14)
    assert g.grad.item() == pytest.approx(by.parameters["g"], rel=1e-12)


def test_layers_without_a_framework():
    """Properties and messages common to the bridges."""
    from livens.run.bridges.layer import SimulationLayer

    step = lv.prepare(PENDULUM, h=0.01, t_end=0.5)
    core = SimulationLayer(step, ["q0", "g"], ["q"], every=10)
    (q,) = core.forward([-1.0, 0.0], 9.5)
    assert q.shape == core.output_shapes[0] == (6, 2)
    of_q, of_g = core.backward([[-1.0, 0.0], 9.5], [2 * q])
    _, by = lv.value_and_gradient(lambda q: q @ q, every=10)(step, parameters={"g": 9.5})
    np.testing.assert_allclose(of_q, by.q0, atol=1e-12)
    assert of_g == pytest.approx(by.parameters["g"], abs=1e-12)
    for bad in (dict(inputs=["nu"], outputs=["q"]), dict(inputs=["g"], outputs=["w"]), dict(inputs=3, outputs=["q"])):
        with pytest.raises(lv.InputError):
            SimulationLayer(step, **bad)
    with pytest.raises(lv.InputError, match="takes 2 inputs"):
        core.forward(9.5)
