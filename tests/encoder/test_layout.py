from litotes.encoder.layout import Layout


def test_places_of_packed_texts() -> None:
    layout = Layout.of([3, 1, 2])
    assert layout.n_texts == 3
    assert layout.n_pieces == 6
    assert layout.longest == 3
    assert layout.starts.tolist() == [0, 3, 4]
    assert layout.texts.tolist() == [0, 0, 0, 1, 2, 2]
    assert layout.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert layout.firsts.lengths == (1, 1, 1)
