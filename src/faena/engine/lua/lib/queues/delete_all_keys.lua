--- Remove whatever a queue without jobs still owns.
--@include keys, minutes
--@exports delete_all_keys
local HISTORY_TTL_S = 7 * 86400

--- A reader may still take what has ended before.
local function leave_history()
  local history, count = key('history'), key('history_stats')
  if call('EXISTS', history) == 1 and call('XLEN', history) == 0 and call('HEXISTS', count, 'lost') == 0 then
    call('UNLINK', history, count)
  end
  call('EXPIRE', history, HISTORY_TTL_S)
  call('EXPIRE', count, HISTORY_TTL_S)
end

local function delete_all_keys()
  leave_history()
  close_minutes()
  for _, to in ipairs(call('HKEYS', key('message_streams'))) do
    call('UNLINK', key('messages:' .. to))
  end
  -- A window whose sum is forgotten would lend its claims to the next limit of its length.
  for _, name in ipairs(call('HKEYS', key('clock'))) do
    if string.find(name, '^window:') then
      call('UNLINK', key(name))
    end
  end
  for window in string.gmatch(call('HGET', key('conf'), 'costs') or '', '/(%d+/%S+)') do
    call('UNLINK', key('costs:' .. window))
  end
  call('UNLINK', key('lanes'), key('ring'), key('parked'), key('debts'), key('heads'), key('tenants'), key('learned'),
    key('aside'), key('shards'), key('moves'), key('transfer_out'), key('transfer_in'), key('late'), key('throttled'),
    key('retired'), key('retired_messages'), key('retired_stats'))
  call('UNLINK', key('redrives'), key('desk_alerts'), key('recipients'), key('message_streams'), key('received'),
    key('pending_sends'), key('schedules'), key('schedule_due'), key('upstreams'), key('troubled'),
    key('features'), key('forgotten'), key('reserved'), key('lots'), key('lot_ends'), key('accounts'), key('trail'),
    key('trail_open'), key('views:' .. 'all'), key('bulks'), key('alerts'), key('alert_notices'), key('alert_silences'),
    key('alert_history'))
  call('UNLINK', key('conf'), key('clock'), key('specs'), key('marks'), key('leases'), key('results'),
    key('holds'), key('waiters'), key('workers'), key('about'), key('events'), key('wake'), key('arrivals'))
end
