// `numsim oracle answer --numbers`: cases whose operands are numbers as text.
#pragma once

#include <functional>
#include <istream>
#include <string_view>

#include "numsim/oracle/operation.h"

namespace numsim::apps {

// Reads one case per line: operands as numbers (ParseExactSum), integers, and random bits as
// hexadecimal digits. Writes the case with its results and flags as `oracle answer` does. An operand
// must be a number of its format. If the request is a conversion without a source format, any number
// is rounded once to the result, and the line begins with its text instead of its code. Throws Error
// that names the line and the column.
void AnswerNumbers(const OperationRequest& request,
                   std::istream& in,
                   const std::function<void(std::string_view)>& write);

}  // namespace numsim::apps
