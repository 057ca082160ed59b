// Training from a configuration: what a user of the training engine includes.
#pragma once

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"
#include "numsim/optim/optimizer.h"
#include "numsim/train/run.h"
#include "numsim/train/trainer.h"
