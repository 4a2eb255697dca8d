"""Where packages come from: pip's settings on to uv, and what an index has."""

from __future__ import annotations

from pathlib import Path

import pytest

from matrix.errors import IndexUnreachableError
from matrix.index import Places, places, published, without_credentials
from matrix.index_settings import parse_pip_config, uv_environment, uv_has_index_settings
from tests.fixture_index import PACKAGE, FixtureRelease, build_wheel, serving, write_index


def test_pips_settings_are_read_as_pip_ranks_them() -> None:
    """The environment outranks the command's section, and that the global one."""
    listing = (
        "global.index-url='https://a.invalid/simple'\n"
        "global.extra-index-url='https://b.invalid/simple https://c.invalid/simple'\n"
        "install.find-links='/install'\n"
        "global.find-links='/global'\n"
        ":env:.cert='/env.pem'\n"
    )
    assert parse_pip_config(listing) == {
        "index-url": "https://a.invalid/simple",
        "extra-index-url": "https://b.invalid/simple https://c.invalid/simple",
        "find-links": "/install",
        "cert": "/env.pem",
    }


def test_pips_settings_go_on_to_uv() -> None:
    """A mirror and a folder of wheels that work for pip work here."""
    config = {
        "index-url": "https://a.invalid/simple",
        "extra-index-url": "https://b.invalid/s https://c.invalid/s",
        "find-links": "/w1 /w2",
        "trusted-host": "a.invalid",
        "cert": "/c.pem",
    }
    assert uv_environment({}, config) == {
        "UV_DEFAULT_INDEX": "https://a.invalid/simple",
        "UV_INDEX": "https://b.invalid/s https://c.invalid/s",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/w1,/w2",
        "UV_INSECURE_HOST": "a.invalid",
        "SSL_CERT_FILE": "/c.pem",
    }


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_CONFIG_FILE"])
def test_uvs_own_settings_win(variable: str) -> None:
    """Then pip's are not looked at, in the environment or in a file."""
    config = {"index-url": "https://a.invalid/simple"}
    assert uv_environment({variable: "x"}, config) == {}
    assert uv_environment({}, config, uv_configured=True) == {}


def test_without_any_settings_uv_chooses_the_build_of_torch() -> None:
    """And `UV_TORCH_BACKEND` overrides it."""
    assert uv_environment({}, {}) == {"UV_TORCH_BACKEND": "auto"}
    assert uv_environment({"UV_TORCH_BACKEND": "cpu"}, {}) == {}


@pytest.mark.parametrize(
    ("text", "configured"),
    [
        ('[[index]]\nurl = "x"\n', True),
        ('index-url = "x"\n', True),
        ('find-links = ["x"]\n', True),
        ('python-preference = "system"\n', False),
    ],
)
def test_uvs_configuration_file_counts_as_settings(
    tmp_path: Path, text: str, configured: bool
) -> None:
    """Only where it says where packages come from."""
    file = tmp_path / "uv.toml"
    file.write_text(text, encoding="utf-8")
    assert uv_has_index_settings([file, tmp_path / "none.toml"]) is configured


def test_places_come_from_uvs_variables(tmp_path: Path) -> None:
    """Names of indexes are uv's business."""
    found = places(
        {
            "UV_DEFAULT_INDEX": "https://a.invalid/simple",
            "UV_INDEX": "private=https://b.invalid/simple https://c.invalid/simple?x=1",
            "UV_FIND_LINKS": f"{tmp_path},/nowhere",
        }
    )
    assert found == Places(
        indexes=(
            "https://a.invalid/simple",
            "https://b.invalid/simple",
            "https://c.invalid/simple?x=1",
        ),
        folders=(tmp_path,),
    )


def test_an_index_is_read_over_http_from_files_and_from_a_folder_of_wheels(tmp_path: Path) -> None:
    """All three tell the same versions, and the first two what was yanked."""
    releases = (FixtureRelease(version="1.0"), FixtureRelease(version="1.1", yanked=True))
    write_index(tmp_path / "index", releases)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    build_wheel(wheels, FixtureRelease(version="1.2"))
    (wheels / "notes.txt").write_text("no package", encoding="utf-8")
    with serving(tmp_path / "index") as address:
        over_http = published(PACKAGE, Places(indexes=(address,), folders=(wheels,)))
    from_files = published(PACKAGE, Places(indexes=((tmp_path / "index").as_uri(),)))
    assert [(str(one.version), one.yanked) for one in over_http] == [
        ("1.0", False),
        ("1.1", True),
        ("1.2", False),
    ]
    assert from_files == over_http[:2]
    assert published("other-project", Places(indexes=((tmp_path / "index").as_uri(),))) == ()


def test_an_index_that_does_not_answer_is_named_without_its_password() -> None:
    """So that the message can be passed on."""
    with serving(Path(__file__).parent) as address:
        pass  # the port is free again
    secret = address.replace("http://", "http://user:secret@")
    with pytest.raises(IndexUnreachableError) as caught:
        published("transformers", Places(indexes=(secret,)))
    assert address in caught.value.message
    assert without_credentials(secret) == address
    assert "secret@" not in caught.value.message.split(": ")[0]
