--- What the dead-letter desk knows of a job, as it travels from one home to another.
--@include key, shelf
--@exports desk_luggage, unpack_desk
--- Packed record, packed sample of its group, when it is due or ''; nil when the desk does not know it.
local function desk_luggage(id)
  local packed = call('HGET', key('desk'), id)
  if not packed then
    return nil
  end
  local sample = call('HGET', key('desk_samples'), cmsgpack.unpack(packed).f)
  return { packed, sample or '', call('ZSCORE', key('desk_due'), id) or '' }
end

local function unpack_desk(id, score, luggage)
  local record = cmsgpack.unpack(luggage[1])
  shelve({ [id] = record }, { [id] = score })
  if luggage[2] ~= '' then
    call('HSETNX', key('desk_samples'), record.f, luggage[2])
  end
  if luggage[3] ~= '' then
    call('ZADD', key('desk_due'), luggage[3], id)
  end
end
