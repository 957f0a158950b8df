# SPDX-License-Identifier: Apache-2.0
"""Model(device=...): the processor's bits on a device, and what is refused."""

import json
import os

import pytest

import outrider
from conftest import DRAFTER, MODELS, PROMPTS

WEIGHTS = dict(weights="int8", kv="f32", threads=1)


@pytest.fixture(scope="module")
def software_device(program) -> str:
    """The Vulkan device that tests run on: as the C++ tests choose it."""
    if "OUTRIDER_TEST_VULKAN" in os.environ:
        return f"vulkan:{os.environ['OUTRIDER_TEST_VULKAN']}"
    listed = json.loads(program("devices", "--json"))
    for device in listed["devices"]:
        if device["software"] and "refused" not in device:
            return device["name"]
    pytest.skip(
        "no Vulkan driver that computes on the processor (scripts/install-deps gpu): "
        + listed["missing"].get("vulkan", "only devices of other kinds")
    )


def expect_the_processors_bits(device: str):
    here = outrider.Model(MODELS / "target", **WEIGHTS)
    there = outrider.Model(MODELS / "target", device=device, **WEIGHTS)
    assert here.summary.device == "" != there.summary.device
    options = dict(max_tokens=8, ignore_eos=True, keep_logits=True)
    expected = outrider.Generator(here).generate(PROMPTS[0], **options)
    for drafter in ("none", DRAFTER):
        said = outrider.Generator(there, drafter=drafter).generate(PROMPTS[0], **options)
        assert said.ids.tolist() == expected.ids.tolist()
        assert said.logits.tobytes() == expected.logits.tobytes()


def test_the_device_that_is_the_processor():
    expect_the_processors_bits("host")


def test_a_vulkan_device(software_device):
    expect_the_processors_bits(software_device)


def test_a_drafters_own_device():
    there = outrider.Model(MODELS / "target", device="host", **WEIGHTS)
    # The drafter's weights as they are stored run on no device: only the target is on one.
    drafter = f"model:{MODELS / 'drafter'}"
    with pytest.raises(outrider.UsageError, match="device host.*int8 or int4"):
        outrider.Generator(there, drafter=drafter, drafter_options={"device": "host"})
    generator = outrider.Generator(there, drafter=drafter, drafter_options={"device": ""})
    assert len(generator.generate(PROMPTS[0], max_tokens=4, ignore_eos=True).ids) == 4


def test_what_no_device_does_is_refused():
    with pytest.raises(outrider.UsageError, match="device host.*int8 or int4"):
        outrider.Model(MODELS / "target", threads=1, device="host")
    with pytest.raises(outrider.UsageError, match="metal:0"):
        outrider.Model(MODELS / "target", device="metal:0", **WEIGHTS)
    with pytest.raises(TypeError):
        outrider.Model(MODELS / "target", device=0)


def test_a_device_that_is_not_there(program):
    # The library's own words, of a build without devices and of a machine without one.
    with pytest.raises(outrider.Error) as error:
        outrider.Model(MODELS / "target", device="vulkan:4711", **WEIGHTS)
    listed = json.loads(program("devices", "--json"))
    why_none = listed["missing"].get("vulkan", "")
    n_devices = sum(device["name"].startswith("vulkan:") for device in listed["devices"])
    if n_devices:
        assert f"vulkan:4711: expected one of the {n_devices} devices" in str(error.value)
    elif why_none.startswith("this build has no Vulkan"):
        assert isinstance(error.value, outrider.UsageError)
        assert str(error.value).startswith("[open device] vulkan:4711: this build has no Vulkan")
    else:
        assert why_none == str(error.value) or "there is none" in str(error.value)
