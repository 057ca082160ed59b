// The header to include for training from a configuration.
#pragma once

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"
#include "numsim/optim/optimizer.h"
#include "numsim/train/run.h"
#include "numsim/train/trainer.h"
