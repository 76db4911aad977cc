#include "implicit_diffusion/finite/stationary.hpp"

#include "../require.hpp"
#include "implicit_diffusion/finite/implicit_function.hpp"

#include <Eigen/SparseCore>

// Where memory runs out, this header's own handler would free the same memory twice; without it the std::bad_alloc goes
// on to ours.
#undef EIGEN_EXCEPTIONS
#include <Eigen/SparseLU>
#define EIGEN_EXCEPTIONS

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

namespace implicit_diffusion {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<long double>(a[i]) * b[i];
  return static_cast<double>(sum);
}

double largest(std::span<const double> v) {
  double size = 0;
  for (const double x : v) size = std::abs(x) <= size ? size : std::abs(x);  // keeps a NaN
  return size;
}

// r = b - (I - P) u.
void residual(const TransitionMatrix& p, std::span<const double> b, std::span<const double> u, std::span<double> r) {
  for (std::size_t i = 0; i < u.size(); ++i) {
    const TransitionRow row = p.row(i);
    long double sum = b[i];
    for (std::size_t s = 0; s < row.size(); ++s)
      sum -= static_cast<long double>(row.values[s]) * (static_cast<long double>(u[i]) - u[row.column(s)]);
    r[i] = static_cast<double>(sum);
  }
}

// r' = b' - x' (I - P): what flows from i to k leaves the one and reaches the other.
void residual_left(const TransitionMatrix& p, std::span<const double> b, std::span<const double> x,
                   std::span<double> r) {
  std::vector<long double> sums(b.begin(), b.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const TransitionRow row = p.row(i);
    for (std::size_t s = 0; s < row.size(); ++s) {
      if (row.column(s) == i) continue;
      const long double flow = static_cast<long double>(x[i]) * row.values[s];
      sums[i] -= flow;
      sums[row.column(s)] += flow;
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) r[i] = static_cast<double>(sums[i]);
}

}  // namespace

// A search against the arrows.
void require_reachable(const TransitionMatrix& p) {
  const std::size_t n = p.states();
  std::vector<std::size_t> starts(n + 2, 0);
  const auto for_each_arrow = [&](auto&& visit) {
    for (std::size_t i = 0; i < n; ++i) {
      const TransitionRow row = p.row(i);
      for (std::size_t s = 0; s < row.size(); ++s)
        if (row.values[s] > 0 && row.column(s) != i) visit(i, row.column(s));
    }
  };
  for_each_arrow([&](std::size_t, std::size_t k) { ++starts[k + 2]; });
  for (std::size_t k = 2; k < starts.size(); ++k) starts[k] += starts[k - 1];
  std::vector<std::uint32_t> sources(starts.back());
  for_each_arrow([&](std::size_t i, std::size_t k) { sources[starts[k + 1]++] = static_cast<std::uint32_t>(i); });
  std::vector<bool> seen(n, false);
  std::vector<std::size_t> waiting{0};
  seen[0] = true;
  while (!waiting.empty()) {
    const std::size_t k = waiting.back();
    waiting.pop_back();
    for (std::size_t e = starts[k]; e < starts[k + 1]; ++e)
      if (!seen[sources[e]]) {
        seen[sources[e]] = true;
        waiting.push_back(sources[e]);
      }
  }
  const auto cut_off = std::ranges::find(seen, false);
  require(cut_off == seen.end(), "chain", "state {} cannot reach state 0: every state must reach every other",
          cut_off - seen.begin());
}

// A factorisation of I - P made regular. solve() gives one of the u with (I - P) u = b, up to a constant vector, if pi
// . b = 0; on the left side one of the x with x' (I - P) = b', up to a multiple of pi, if b sums to zero.
struct StationarySystem::Factors {
  virtual ~Factors() = default;
  virtual void solve(Side side, std::span<const double> b, std::span<double> x) const = 0;
  // Proportional to the law.
  virtual void law(std::span<double> x) const = 0;
};

struct StationarySystem::Bordered final : Factors {
  explicit Bordered(const TransitionMatrix& p) : n(p.states()), system(make(p), n + 1), right(n + 1), solution(n + 1) {}

  // [I - P', 1; 1', 0]
  static std::vector<double> make(const TransitionMatrix& p) {
    const std::size_t m = p.states();
    std::vector<double> a(m * m, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      const std::span<const double> row = p.row(i).values;
      for (std::size_t k = 0; k < m; ++k) {
        if (k == i) continue;
        a[k * m + i] = -row[k];
        a[i * m + i] += row[k];
      }
    }
    return bordered(a, m);
  }

  void solve(Side side, std::span<const double> b, std::span<double> x) const override { solve(side, b, 0, x); }
  void law(std::span<double> x) const override { solve(Side::left, std::vector<double>(n, 0.0), 1, x); }

  void solve(Side side, std::span<const double> b, double last, std::span<double> x) const {
    std::ranges::copy(b, right.begin());
    right[n] = last;
    if (side == Side::left)
      system.solve(right, solution);
    else
      system.solve_transposed(right, solution);
    std::copy_n(solution.begin(), n, x.begin());
  }

  std::size_t n;
  ImplicitFunction system;
  mutable std::vector<double> right, solution;
};

// Row and column `pin` of I - P are left out. The transpose is what is factorised: its columns, rows of P, are as Eigen
// wants them.
struct StationarySystem::Pinned final : Factors {
  using Matrix = Eigen::SparseMatrix<double, Eigen::ColMajor, int>;

  Pinned(const TransitionMatrix& p, std::size_t pinned) : n(p.states()), pin(pinned) {
    require(n < static_cast<std::size_t>(std::numeric_limits<int>::max()) / 2, "chain",
            "{} states are too many to factorise", n);
    fill(p);
    // The largest pivot of a dominant M-matrix is on its diagonal, or near enough.
    lu->setPivotThreshold(0.0);
    lu->analyzePattern(transposed);
    factorise();
  }

  // With new values on the same pattern; false, and it is of no more use, where the pattern is another.
  bool refactorise(const TransitionMatrix& p) {
    if (p.states() != n) return false;
    const std::vector<int> starts(transposed.outerIndexPtr(), transposed.outerIndexPtr() + n);
    const std::vector<int> rows(transposed.innerIndexPtr(), transposed.innerIndexPtr() + transposed.nonZeros());
    fill(p);
    if (!std::equal(starts.begin(), starts.end(), transposed.outerIndexPtr()) ||
        !std::equal(rows.begin(), rows.end(), transposed.innerIndexPtr()))
      return false;
    factorise();
    return true;
  }

  void fill(const TransitionMatrix& p) {
    const auto m = static_cast<Eigen::Index>(n - 1);
    transposed.resize(m, m);
    transposed.reserve(static_cast<Eigen::Index>(p.entries() + n));
    from_pin.setZero(m);
    for (std::size_t i = 0; i < n; ++i) {
      const TransitionRow row = p.row(i);
      double leaving = 0;
      for (std::size_t s = 0; s < row.size(); ++s) {
        if (row.column(s) == i) continue;
        leaving += row.values[s];
        if (i == pin) from_pin[place(row.column(s))] = row.values[s];
      }
      if (i == pin) continue;
      const Eigen::Index column = place(i);
      transposed.startVec(column);
      bool diagonal = false;
      for (std::size_t s = 0; s <= row.size(); ++s) {
        const std::size_t k = s < row.size() ? row.column(s) : n;
        if (!diagonal && k >= i) {
          transposed.insertBack(column, column) = leaving;
          diagonal = true;
        }
        if (k < n && k != i && k != pin) transposed.insertBack(place(k), column) = -row.values[s];
      }
    }
    transposed.finalize();
  }

  void factorise() {
    try {
      lu->factorize(transposed);
    } catch (const std::bad_alloc&) {
      (void)lu.release();  // some of its memory is freed already, so its destructor must not run
      throw;
    }
    require(lu->info() == Eigen::Success, "chain", "I - P has no factors: {}", lu->lastErrorMessage());
  }

  Eigen::Index place(std::size_t i) const { return static_cast<Eigen::Index>(i < pin ? i : i - 1); }

  void solve(Side side, std::span<const double> b, std::span<double> x) const override {
    right.resize(static_cast<Eigen::Index>(n - 1));
    for (std::size_t i = 0; i < n; ++i)
      if (i != pin) right[place(i)] = b[i];
    if (side == Side::left)
      solution = lu->solve(right);
    else
      solution = lu->transpose().solve(right);
    put_in(0, x);
  }
  void law(std::span<double> x) const override {
    solution = lu->solve(from_pin);
    put_in(1, x);
  }
  void put_in(double at_pin, std::span<double> x) const {
    for (std::size_t i = 0; i < n; ++i) x[i] = i == pin ? at_pin : solution[place(i)];
  }

  std::size_t n, pin;
  Matrix transposed;
  Eigen::VectorXd from_pin;  // P_pin,k
  using LU = Eigen::SparseLU<Matrix, Eigen::COLAMDOrdering<int>>;
  std::unique_ptr<LU> lu = std::make_unique<LU>();
  mutable Eigen::VectorXd right, solution;
};

StationarySystem::StationarySystem() = default;
StationarySystem::~StationarySystem() = default;
StationarySystem::StationarySystem(StationarySystem&&) noexcept = default;
StationarySystem& StationarySystem::operator=(StationarySystem&&) noexcept = default;

void StationarySystem::factorise(const TransitionMatrix& p) {
  require(p.states() >= 2, "chain", "{} states are too few", p.states());
  matrix_ = &p;
  if (p.is_dense()) {
    require_reachable(p);
    factors_ = std::make_unique<Bordered>(p);
    return solve_law();
  }
  auto* pinned = dynamic_cast<Pinned*>(factors_.get());
  if (!pinned || !pinned->refactorise(p)) {
    require_reachable(p);
    factors_ = std::make_unique<Pinned>(p, 0);
  }
  solve_law();
  // A state that is hardly ever visited is a bad one to pin: all the others would be known relative to it.
  const auto most = static_cast<std::size_t>(std::ranges::max_element(law_) - law_.begin());
  if (!(law_[static_cast<const Pinned&>(*factors_).pin] > 1e-6 * law_[most])) {
    factors_ = std::make_unique<Pinned>(p, most);
    solve_law();
  }
}

// Adds solutions for the residual until they are small as rounding, or shrink no more.
void StationarySystem::refine(Side side, std::span<const double> b, std::span<double> x) const {
  std::vector<double> r(x.size()), correction(x.size());
  double last = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 10; ++round) {
    (side == Side::left ? residual_left : residual)(*matrix_, b, x, r);
    factors_->solve(side, r, correction);
    const double size = largest(correction);
    if (!(size < 0.5 * last)) return;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += correction[i];
    if (size <= 2 * std::numeric_limits<double>::epsilon() * largest(x)) return;
    last = size;
  }
}

void StationarySystem::solve_law() {
  law_.resize(matrix_->states());
  factors_->law(law_);
  const auto normalise = [&] {
    long double sum = 0;
    for (const double x : law_) sum += x;
    for (double& x : law_) x = static_cast<double>(x / sum);
  };
  normalise();
  refine(Side::left, std::vector<double>(law_.size(), 0.0), law_);
  for (double& x : law_) x = x < 0 ? 0 : x;  // rounding of what is as good as zero
  normalise();
}

void StationarySystem::forward(std::span<const double> b, std::span<double> gamma) const {
  factors_->solve(Side::left, b, gamma);
  refine(Side::left, b, gamma);
  long double sum = 0;
  for (const double x : gamma) sum += x;
  for (std::size_t i = 0; i < gamma.size(); ++i) gamma[i] = static_cast<double>(gamma[i] - sum * law_[i]);
}

void StationarySystem::adjoint(std::span<const double> f, std::span<double> u) const {
  const double mean = dot(law_, f);
  std::vector<double> b(f.begin(), f.end());
  for (double& x : b) x -= mean;
  factors_->solve(Side::right, b, u);
  refine(Side::right, b, u);
  const double shift = mean - dot(law_, u);
  for (double& x : u) x += shift;
}

}  // namespace implicit_diffusion
