-- Stands behind bits.lua where the filter's project keeps what the filter was made for in a hash,
-- which is the last of the keys. RECORD has its fields and values, the first FIXED of which must be
-- like that: a filter of another size was made in place of this one otherwise. Where Redis has lost
-- the hash, with the filter, it is written again.

local bits_refusal, bits_judge = filter_refusal, judge
local record

local function filter_refusal(keys)
    record = table.remove(keys)
    local found = redis.call('HGETALL', record)
    local fields = {}
    for at = 1, #found, 2 do
        fields[found[at]] = found[at + 1]
    end
    for at = 1, 2 * FIXED, 2 do
        if #found > 0 and fields[RECORD[at]] ~= RECORD[at + 1] then
            return redis.error_reply(
                'FILTER another program made another filter in place of this one: ' .. record
                .. ' says that ' .. RECORD[at] .. ' is ' .. tostring(fields[RECORD[at]])
                .. ', and it was ' .. RECORD[at + 1])
        end
    end
    if #found > 0 then
        record = nil
    end
    return record and permission_refusal('HSET', record, unpack(RECORD)) or bits_refusal(keys)
end

local function judge(...)
    local onward, unseen, remember = bits_judge(...)
    return onward, unseen, function()
        remember()
        if record then
            redis.call('HSET', record, unpack(RECORD))
        end
    end
end
