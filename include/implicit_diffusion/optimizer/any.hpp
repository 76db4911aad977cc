// One of the built-in optimizers, chosen by its name.
#pragma once

#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/memory.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace implicit_diffusion {

namespace detail {

// The names of a list of optimizers, and the one of a name.
template <class... Named>
struct OptimizerList {
  using Choice = std::variant<Hold, Named...>;
  static std::vector<std::string> names() { return {Named::name...}; }
  static Choice make(std::string_view name, const Schedule& rate) {
    Choice made;
    ((name == Named::name ? void(made = Named::with_rate(rate)) : void()), ...);
    return made;
  }
};

}  // namespace detail

// The list of them: each has a name and is made from the schedule of its rate.
using BuiltinOptimizers = detail::OptimizerList<GradientDescent, Adam, RmsProp>;

class AnyOptimizer {
 public:
  AnyOptimizer() = default;  // leaves theta where it is

  // The names, in the order of the list.
  static std::vector<std::string> names() { return BuiltinOptimizers::names(); }
  // The one of that name; where there is none, it leaves theta where it is.
  static AnyOptimizer make(std::string_view name, const Schedule& rate) {
    AnyOptimizer made;
    made.choice_ = BuiltinOptimizers::make(name, rate);
    return made;
  }

  void update(std::vector<double>& theta, const std::vector<double>& gradient, std::int64_t step) {
    std::visit([&](auto& o) { o.update(theta, gradient, step); }, choice_);
  }

  // Of one that remembers nothing it is empty.
  const OptimizerMemory<>& memory() const { return const_cast<AnyOptimizer*>(this)->memory(); }
  OptimizerMemory<>& memory() {
    return std::visit(
        [this](auto& o) -> OptimizerMemory<>& {
          if constexpr (requires { o.memory(); }) return o.memory();
          return nothing_;
        },
        choice_);
  }

 private:
  BuiltinOptimizers::Choice choice_;
  OptimizerMemory<> nothing_{.numbers = {}, .kinds = 0};
};

}  // namespace implicit_diffusion
