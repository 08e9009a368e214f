"""Classical problems of the field without constraints, against independent integrations with more digits."""

import numpy as np
import pytest

import livens as lv


@pytest.fixture
def field(reference):
    return reference("field")


def state(name, t, scheme="taylor", **options):
    run = lv.simulate(lv.problems.load(name), scheme=scheme, t_end=t, **options)
    return run.q[-1], run.v[-1]


def test_pleiades(field):
    q, v = state("pleiades", 3.0)
    assert np.abs(np.concatenate([q[::2], q[1::2], v[::2], v[1::2]]) - field["pleiades"]["y"]).max() < 2e-12


def test_outer_solar_system(field):
    for row in field["outer_solar_system"]:
        exact = np.array(row["state_per_body"])
        q, v = (part.reshape(6, 3) for part in state("outer-solar-system", row["t"]))
        assert np.abs(q - exact[:, :3]).max() < 2e-11 and np.abs(v - exact[:, 3:]).max() < 2e-14


def test_henon_heiles(field):
    for row in field["henon_heiles"]:
        assert np.abs(np.concatenate(state("henon-heiles", row["t"])) - row["y"]).max() < 1e-13
    with pytest.raises(lv.InputError, match="'energy' must be between"):
        lv.problems.load("henon-heiles", energy=0.2)


def test_fermi_pasta_ulam_tsingou(field):
    """The chain, and what has gone from the first of its modes to the next."""
    (row,) = field["fput"]
    q, v = state("fput", row["t"])
    assert np.abs(q - row["q"]).max() < 1e-13 and np.abs(v - row["p"]).max() < 1e-13
    i = np.arange(1, 32)
    modes = np.sqrt(2 / 32) * np.sin(np.pi * np.outer(np.arange(1, 6), i) / 32)
    energies = ((modes @ v) ** 2 + (2 * np.sin(np.pi * np.arange(1, 6) / 64) * (modes @ q)) ** 2) / 2
    assert np.allclose(energies, row["mode_energies_1_to_5"], rtol=1e-9)
    with pytest.raises(lv.InputError, match="at least 3"):
        lv.problems.load("fput", springs=2)


def test_stiff_springs_exchange_their_energy(field):
    for row in field["fput_stiff"]:
        q, v = state("fput-stiff", row["t"])
        assert np.abs(np.concatenate([q, v]) - row["z"]).max() < 1e-11
        stiff = (v[3:] ** 2 + (50.0 * q[3:]) ** 2) / 2
        assert np.allclose(stiff, row["oscillatory"], rtol=1e-9)
    with pytest.raises(lv.InputError, match="omega"):
        lv.problems.load("fput-stiff", omega=0.0)


def test_toda(field):
    """Also the eigenvalues of the Lax matrix, which nothing but the exact motion keeps."""
    for row in field["toda"]:
        q, p = state("toda", row["t"])
        assert np.abs(q - row["q"]).max() < 2e-12 and np.abs(p - row["p"]).max() < 2e-12
    b = np.exp((q - np.roll(q, -1)) / 2) / 2
    lax = np.diag(-p / 2)
    for i in range(3):
        lax[i, (i + 1) % 3] += b[i]
        lax[(i + 1) % 3, i] += b[i]
    assert np.allclose(np.linalg.eigvalsh(lax), np.sort(field["toda_lax_eigenvalues"]), atol=1e-12)
