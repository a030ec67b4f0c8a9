--- How many of `want` the limits allow, and when the one that says least may allow more.
--@include window
local function ask_limits(text, want, now, lane)
  local grant, opens_at = want, nil
  for _, window in ipairs(windows_of(text, lane)) do
    local room, at = room_in(window, now)
    if room < grant then
      -- An empty window fills up with this very claim, and opens again when that leaves it.
      grant, opens_at = math.max(room, 0), at or now + window.per_us
    end
  end
  return grant, opens_at
end
