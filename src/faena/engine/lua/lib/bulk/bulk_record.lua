--- Bulk actions: what is done to many jobs, by and by.
--   bulks   id -> packed record: state running|stopped|done · at (begun) · ended_at · owner (who drives it) ·
--           lease_until (when another may) · plan (what is done to which jobs) · progress: both packed by the driver
--@include safe_read, keys
--@exports bulk_of, save_bulk, forget_bulks
local KEPT = 100   -- bulk actions that are remembered

local KINDS = { state = 'string', at = 'number', ended_at = 'number', owner = 'string', lease_until = 'number',
                plan = 'string', progress = 'string' }

local function read_bulk(packed)
  local bulk = keep_kinds(unpacked(packed) or {}, KINDS)
  bulk.owner, bulk.lease_until = bulk.owner or '', bulk.lease_until or 0
  return bulk
end

local function bulk_of(id)
  local packed = call('HGET', key('bulks'), id)
  return packed and read_bulk(packed) or nil
end

local function save_bulk(id, bulk)
  call('HSET', key('bulks'), id, cmsgpack.pack(bulk))
end

--- Make room for one more: those that ended first are forgotten.
local function forget_bulks()
  local all, ended = call('HGETALL', key('bulks')), {}
  for i = 1, #all, 2 do
    local bulk = read_bulk(all[i + 1])
    if bulk.state ~= 'running' then
      ended[#ended + 1] = { all[i], bulk.ended_at or 0 }
    end
  end
  table.sort(ended, function(a, b) return a[2] < b[2] end)
  for i = 1, math.min(#ended, #all / 2 - KEPT + 1) do
    call('HDEL', key('bulks'), ended[i][1])
  end
end
