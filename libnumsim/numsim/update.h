// The header to include for update rules, which apply optimiser steps to weights in small formats.
#pragma once

#include "numsim/cast.h"
#include "numsim/updates/update_rule.h"
