"""The contract suite is part of the library: its assertions are to speak as clearly as those of tests."""

import pytest

pytest.register_assert_rewrite("talekeeper.testing.stores")
