#include "langevin/comparison/experiment.hpp"

#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {

std::filesystem::path folder_of(const std::filesystem::path& folder, const Setting& setting, std::uint64_t seed) {
  return folder / "settings" / setting.folder / fmt::format("seed-{}", seed);
}

LangevinComparison read_langevin_comparison_configuration(const Document& d) {
  TableReader top(d), own = top.table("comparison");
  for (const char* key : {"method", "inner_steps"})
    if (top.contains(key))
      top.fail(key, fmt::format("unknown key; did you mean comparison.{}{}?", key,
                                key == std::string_view("method") ? "s" : ""));
  LangevinComparison all;
  const std::vector<Method> chosen = read_methods(own, "methods");
  if (chosen.empty()) own.fail("methods", "missing: the methods to compare");
  const std::vector<std::int64_t> inner = own.integers("inner_steps", {1}, 1);
  for (const Method m : chosen)
    if (std::ranges::count(chosen, m) > 1) own.fail("methods", fmt::format("{} is there twice", to_string(m)));
  for (const std::int64_t t : inner)
    if (std::ranges::count(inner, t) > 1) own.fail("inner_steps", fmt::format("{} is there twice", t));
  if (inner.empty()) own.fail("inner_steps", "empty: one number of steps at least is needed");
  all.seeds = own.integer("seeds", 10, 1, 100'000);
  const std::vector<std::string> variants = own.texts("variants", {});
  own.finish({&own});

  Document shared = d;
  shared.table.erase("comparison");
  static_cast<Common&>(all) = read_langevin_configuration(shared, Methods::several);
  auto& entries = all.resolved.entries;
  entries.insert(entries.begin(), {"", "kind", toml_string("langevin-comparison")});
  own.append_to(all.resolved);
  if (all.seed + static_cast<std::uint64_t>(all.seeds) - 1 > largest_seed)
    own.fail("seeds", fmt::format("{} runs from seed {} need seeds beyond {}", all.seeds, all.seed, largest_seed));

  const auto refuse = [&](const std::string& change) {
    own.fail("variants", fmt::format("{} is not of the form key=value", implicit_diffusion::io::excerpt(change)));
  };
  std::size_t count = 0;  // of variants
  // One run with changes to the file.
  const auto add = [&](const std::string& changes, const std::string& variant) {
    Document one = shared;
    one.table.erase("kind");
    for (Override& o : read_changes(changes, refuse)) {
      for (const std::string_view common : {"seed", "steps", "experiment", "title", "kind", "duration", "quick",
                                            "thresholds", "theta_opt", "snapshots", "log_every", "comparison"})
        if (!variant.empty() && (o.key == common || o.key.starts_with(std::string(common) + ".")))
          own.fail("variants", fmt::format("{} is common to all settings", common));
      o.option = fmt::format("{}: comparison: {}={}", d.where, o.key, o.value);
      change(one, o);
    }
    Setting s{read_langevin_configuration(one), variant, std::string()};
    s.folder = to_string(s.configuration.method);
    if (has_inner_steps(s.configuration.method)) s.folder += fmt::format("-{}", s.configuration.inner_steps);
    if (!variant.empty()) s.folder = fmt::format("variant-{}-{}", ++count, s.folder);
    all.settings.push_back(std::move(s));
  };
  for (const Method m : chosen) {
    const std::string method = fmt::format("method={}", to_string(m));
    if (!has_inner_steps(m)) add(method, "");
    for (const std::int64_t t : inner)
      if (has_inner_steps(m)) add(fmt::format("{} inner_steps={}", method, t), "");
  }
  for (const std::string& variant : variants) add(variant, variant);
  return all;
}

}  // namespace program
