// The header to include for training from a configuration. A configuration or a batch that does not
// fit the model makes a call throw numsim::Error.
#pragma once

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"
#include "numsim/optim/optimizer.h"
#include "numsim/train/run.h"
#include "numsim/train/trainer.h"
