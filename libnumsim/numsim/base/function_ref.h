// A function that somebody else owns, for the time of a call: std::function without its memory.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace numsim {

template <typename Signature>
class FunctionRef;

// Refers to a lambda or another callable object, which must live as long as calls are made; made
// at the call that takes it, it does. Allocates nothing.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <typename Function>
  requires(std::is_class_v<std::remove_cvref_t<Function>> &&
           !std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
           std::is_invocable_r_v<Result, Function&, Arguments...>)
      FunctionRef(Function&& function)  // NOLINT: a lambda is passed as it is
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(object))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace numsim
