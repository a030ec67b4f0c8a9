--- How many of `want` the limits allow, and when the one that says least may allow more.
--@include window, learn
--@exports ask_limits
local function ask_limits(text, want, now)
  local grant, opens_at, windows = want, nil, learned_windows(text, nil, now)
  for _, window in ipairs(windows) do
    local room, at = room_in(window, now)
    if room < grant then
      -- An empty window fills up with this very claim, and opens again when that leaves it.
      grant, opens_at = math.max(room, 0), at or now + window.per_us
    end
  end
  forget_recovered(windows)
  return grant, opens_at
end
