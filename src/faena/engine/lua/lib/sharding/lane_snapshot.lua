--- What goes with a lane to another shard.
--@include sliding_window, cost_limit
--@exports windows_of_both
--- The windows that count for a lane now, and those of the queue, which count when its override ends.
local function windows_of_both(control, conf, lane)
  local windows, known = {}, {}
  for _, text in ipairs({ control and control.limits or '', conf.tenant_limits or '' }) do
    for _, window in ipairs(windows_of(text, lane)) do
      if not known[window.name] then
        windows[#windows + 1], known[window.name] = window, true
      end
    end
  end
  for _, window in ipairs(cost_windows(conf.tenant_costs, lane)) do
    windows[#windows + 1] = window
  end
  return windows
end
