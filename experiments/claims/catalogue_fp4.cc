// The items of the papers on 4-bit training that claims are about: [NVFP4], [FourOverSix], [Quartet-II],
// [UFP4], [AMD-MXFP4], [MXFP4-SR], [INT-FP]. They contradict one another; the list is not all of them.
#include "experiments/claims/catalogue.h"

namespace numsim::experiments {

std::span<const PaperItem> Fp4Items() {
  static constexpr PaperItem kItems[] = {
      {"nvfp4/abstract",
       "[NVFP4] abstract",
       "A model with 12 billion parameters, trained on 10 trillion tokens in NVFP4, has a loss and"
       " accuracies comparable to those of an FP8 baseline.",
       ""},
      {"nvfp4/hadamard",
       "[NVFP4] method: random Hadamard transforms",
       "The operands of the weight gradient are transformed in blocks of 16, to bound outliers.",
       ""},
      {"nvfp4/stochastic-rounding",
       "[NVFP4] method: stochastic rounding",
       "Gradients are rounded stochastically, for an unbiased estimation.",
       ""},
      {"nvfp4/high-precision-layers",
       "[NVFP4] method: layers in high precision",
       "About 15 % of the linear layers, mostly the last ones, stay in bf16.",
       ""},
      {"four-over-six/abstract",
       "[FourOverSix] abstract",
       "Scaling some blocks of NVFP4 to 4 instead of 6 reduces the error of near-maximal values, and"
       " brings the training loss closer to that of bf16.",
       ""},
      {"quartet-2/abstract",
       "[Quartet-II] abstract",
       "MS-EDEN is unbiased and has less than half of the error of stochastic rounding, which loses"
       " noticeable accuracy.",
       ""},
      {"quartet-2/loss-gap",
       "[Quartet-II] loss gaps",
       "Quartet II closes about 20 % of the gap to bf16 that earlier recipes in NVFP4 leave.",
       ""},
      {"ufp4/abstract",
       "[UFP4] abstract",
       "E2M1 shrinks what it rounds, and Hadamard transforms amplify that; uniform grids with"
       " transforms of all three GEMMs train to a lower loss.",
       ""},
      {"amd-mxfp4/abstract",
       "[AMD-MXFP4] abstract",
       "In MXFP4 the weight gradient is what degrades training; stochastic rounding and random"
       " Hadamard transforms fail to stabilise it, deterministic ones do not.",
       ""},
      {"mxfp4-sr/abstract",
       "[MXFP4-SR] abstract",
       "Backward products in MXFP4 with stochastic rounding and random Hadamard transforms are"
       " near-lossless, plain MXFP4 is not.",
       ""},
      {"int-fp/abstract",
       "[INT-FP] abstract",
       "In 4 bits floating point is often the more accurate format, but NVINT4 can surpass NVFP4"
       " where a Hadamard rotation mitigates outliers.",
       ""},
  };
  return kItems;
}

}  // namespace numsim::experiments
