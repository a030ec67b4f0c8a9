--- The limits of the whole queue.
--@include sliding_window, adaptive_limits
--@exports ask_limits, spend_limits

--- How many of `want` they allow, and when the one that says least may allow more.
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

--- Write granted claims into every window.
local function spend_limits(text, now, number)
  for _, window in ipairs(windows_of(text)) do
    spend(window, now, number)
  end
end
