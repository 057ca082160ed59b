// Steps of weights in small formats: what a user of the update rules includes.
#pragma once

#include "numsim/cast.h"
#include "numsim/updates/update_rule.h"
