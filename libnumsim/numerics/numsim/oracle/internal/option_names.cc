#include "numsim/base/keyword.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

constexpr Keyword<Tininess> kTininess[] = {{"after", Tininess::kAfterRounding},
                                           {"before", Tininess::kBeforeRounding}};
constexpr Keyword<InvalidInteger> kInvalidIntegers[] = {{"riscv", InvalidInteger::kRiscv},
                                                        {"arm", InvalidInteger::kArm},
                                                        {"x86", InvalidInteger::kX86}};

}  // namespace

std::string_view ToString(Tininess tininess) { return KeywordToString(kTininess, tininess); }

Tininess ParseTininess(std::string_view text) { return ParseKeyword(kTininess, "tininess", text); }

std::string_view ToString(InvalidInteger invalid) {
  return KeywordToString(kInvalidIntegers, invalid);
}

InvalidInteger ParseInvalidInteger(std::string_view text) {
  return ParseKeyword(kInvalidIntegers, "invalid integer", text);
}

}  // namespace numsim
