#include "numsim/base/keyword.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

constexpr Keyword<Tininess> kTininess[] = {{"after", Tininess::kAfterRounding},
                                           {"before", Tininess::kBeforeRounding}};

}  // namespace

std::string_view ToString(Tininess tininess) { return KeywordToString(kTininess, tininess); }

Tininess ParseTininess(std::string_view text) { return ParseKeyword(kTininess, "tininess", text); }

}  // namespace numsim
