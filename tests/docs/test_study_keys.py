"""Every key of a study file stands in the reference."""

from docs.study_keys import reference

from veridyn.studies.config.study import KINDS, settings_class


def test_every_key_of_every_section_is_in_the_reference() -> None:
    text = reference("identify")
    for name in settings_class("identify").model_fields:
        assert f"| `{name}` |" in text
    assert "### `signals`" in text and "### `training[]`" in text and "### `log.columns.*`" in text
    assert "| `order` | whole number | `4` | Its order, for one pass. |" in text
    assert "| `file` | text | – | Model file" in text  # or a fit
    assert "`refuse` or `drop`" in text


def test_all_kinds_are_there() -> None:
    text = reference()
    assert all(f"## `kind: {kind}`" in text for kind in KINDS)
