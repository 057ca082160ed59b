// Encodes two numbers with the installed library; exits 1 when a code is not the expected one.
#include <cstdio>

#include "numsim/base/build_info.h"
#include "numsim/cast.h"
#include "numsim/gemm.h"
#include "numsim/quantize.h"
#include "numsim/train.h"
#include "numsim/update.h"

int main() {
  const numsim::Format e4m3fn = numsim::ParseFormat("e4m3fn");
  const unsigned one = numsim::Encode(e4m3fn.spec, 1.0f);
  const unsigned largest = numsim::Encode(e4m3fn.spec, -448.0f);
  std::printf("numsim %.*s: 1 -> 0x%02X, -448 -> 0x%02X\n",
              static_cast<int>(numsim::BuildVersion().size()),
              numsim::BuildVersion().data(),
              one,
              largest);
  return one == 0x38 && largest == 0xFE ? 0 : 1;
}
