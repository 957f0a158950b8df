// SPDX-License-Identifier: Apache-2.0
// Descriptions of keys that several kinds of drafters share.
#ifndef OUTRIDER_SPECULATE_REGISTRY_DRAFTER_KEYS_H_
#define OUTRIDER_SPECULATE_REGISTRY_DRAFTER_KEYS_H_

#include <string>

#include "outrider/spec_description.h"

namespace outrider {

// example: a spec that gives the key.
KeyDescription confidence_key(std::string example);
KeyDescription weights_key(std::string example);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_REGISTRY_DRAFTER_KEYS_H_
