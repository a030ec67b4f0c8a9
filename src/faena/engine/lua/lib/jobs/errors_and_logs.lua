--- What a job has to tell beyond its spec: errors, deaths, progress, log lines. Bounded per job.
--@include safe_read, keys
--@exports append_line
local KEPT = { error = 20, log = 100 }

--- Append `text` to the numbered lines `error:1`, `error:2`, … (or `log:…`), dropping the oldest.
local function append_line(id, kind, text)
  local info = key('info:' .. id)
  local is_kept, number = pcall(bump, info, kind .. 's', 1)
  if not is_kept then
    return   -- a key of another type: no job may be kept from its end by what is told of it
  end
  call('HSET', info, kind .. ':' .. number, text)
  if number > KEPT[kind] then
    call('HDEL', info, kind .. ':' .. (number - KEPT[kind]))
  end
end
