// The header to include for update rules, which apply optimiser steps to weights in small formats.
// Arrays whose sizes do not fit each other make every call throw numsim::Error.
#pragma once

#include "numsim/cast.h"
#include "numsim/updates/update_rule.h"
