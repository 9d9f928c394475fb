import random

from lexmem.evaluation.batching import Request, make_batches, make_rows


def test_an_input_that_begins_another_needs_no_row():
    requests = [Request((1, 2), (3,)), Request((1, 2), (4,)), Request((1,), (2, 9, 9)), Request((7,), (8,))]
    rows = make_rows(requests)
    assert [row.ids for row in rows] == [(1, 2, 9), (7,)]
    assert rows[0].reads == [(0, 1), (1, 1), (2, 0)]


def test_choices_of_an_item_share_their_context():
    context = tuple(range(100, 120))
    rows = make_rows([Request(context, (choice, choice, 1)) for choice in range(4)])
    assert len(rows) == 4
    assert {row.prefix for row in rows} == {context[:16]}
    assert all(row.prefix + row.suffix == row.ids for row in rows)


def test_a_row_joins_its_neighbours_only_where_that_saves_ids():
    long, short = tuple(range(64)), tuple(range(8))
    rows = make_rows([Request(long, (choice, 0)) for choice in (90, 91, 92)] + [Request((*short, 99), (1, 0))])
    assert {len(row.ids): row.shared for row in rows} == {65: 64, 10: 0}


def test_batches_hold_every_row_once_within_the_bound():
    rng = random.Random(0)
    contexts = [tuple(rng.choices(range(3), k=rng.randint(1, 40))) for _ in range(60)]
    requests = [Request(c, tuple(rng.choices(range(3), k=rng.randint(1, 9)))) for c in contexts for _ in range(3)]
    rows = make_rows(requests)
    batches = list(make_batches(rows, batch_tokens=128))
    assert sorted(row.ids for batch in batches for row in batch) == sorted(row.ids for row in rows)
    assert sorted(index for row in rows for index, _ in row.reads) == list(range(len(requests)))
    for batch in batches:
        assert len({row.shared for row in batch}) == 1
        assert len(batch) == 1 or len(batch) * max(len(row.ids) for row in batch) <= 128
