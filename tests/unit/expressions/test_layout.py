"""The parts of a vector by name: they cover it, one after the other, and every place knows its name."""

from hypothesis import given
from hypothesis import strategies as st

from livens.expressions.state_layout import Layout


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_layouts(sizes):
    layout = Layout(**{f"part{i}": size for i, size in enumerate(sizes)})
    assert layout.size == sum(sizes)
    covered = [i for name in layout.sizes for i in range(layout[name].start, layout[name].stop)]
    assert covered == list(range(layout.size))
    for i in covered:
        name = layout.entry_label(i).split("[")[0]
        assert layout[name].start <= i < layout[name].stop
