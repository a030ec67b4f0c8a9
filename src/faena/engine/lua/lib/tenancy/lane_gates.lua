--- What stands between a tenant's ready jobs and a claim: its hold, its max_running, its limits.
--@include lane, packed_window
--@exports lane_room, windows_for
--- How many of `want` a lane may be given, and when to look again if that is none; with the reason.
local function lane_room(want, control, windows, conf, now, running)
  if control and control.held_until then
    return 0, control.held_until == 0 and FULL or control.held_until, 'held'
  end
  local most = control and control.max_running or conf.tenant_max_running
  if most and most - running < want then
    want = math.max(0, most - running)
    if want == 0 then
      local is_own = control and control.max_running   -- and may end before one of its jobs does
      return 0, is_own and control.ends_at or FULL, 'tenant_max_running'
    end
  end
  local room, opens_at = room_in_windows(windows, want, now)
  local ends_at = control and control.ends_at or FULL   -- a limit of its own may end before it opens
  return room, opens_at and math.min(opens_at, ends_at), 'tenant_limit'
end

--- The windows that count for lanes, by lane.
local function windows_for(lanes, controls, conf, now)
  local texts = {}
  for i, lane in ipairs(lanes) do
    local control = controls[lane]
    texts[i] = control and control.limits or conf.tenant_limits or false
  end
  return read_lane_windows(lanes, texts, now)
end
