// How a GEMM of a layer is put on tensor cores. Needs no device.
#pragma once

#include <string_view>

#include "numsim/linear/linear_recipe.h"

namespace numsim {

// Gives the GEMM of a layer of that kind the mode of Hopper's tensor cores, and a container if they
// lack its formats, as ForDevice does. Throws Error with the reason if they cannot serve it.
void PutOnTensorCores(std::string_view kind, LinearGemm product, GemmRecipe& made);

}  // namespace numsim
