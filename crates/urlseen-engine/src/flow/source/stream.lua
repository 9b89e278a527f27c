-- A Redis stream as source. A place is the id of the last committed entry. FIELD is the field with
-- the item. AFTER ('keep', 'delete' or 'trim') is the treatment of committed entries.

-- Returns true if the id of one entry is lower than another id. Compares the digits, because
-- numbers in Lua have only 53 bits.
local function is_lower(id, other)
    local mine = {string.match(id, '^(%d+)-(%d+)$')}
    local theirs = {string.match(other, '^(%d+)-(%d+)$')}
    for part = 1, 2 do
        if #mine[part] ~= #theirs[part] then
            return #mine[part] < #theirs[part]
        elseif mine[part] ~= theirs[part] then
            return mine[part] < theirs[part]
        end
    end
    return false
end

-- Returns the values of XINFO STREAM by name, or nil if the stream does not exist.
local function stream_facts(source)
    if redis.call('EXISTS', source) == 0 then
        return nil
    end
    local told, facts = redis.call('XINFO', 'STREAM', source), {}
    for index = 1, #told, 2 do
        facts[told[index]] = told[index + 1]
    end
    return facts
end

-- Returns a refusal unless the stream has generated the id `place`. Otherwise new entries could
-- have lower ids, and would never be read. Also refuses to trim entries that consumer groups may
-- not have read.
local function stream_refusal(source, state, facts, place)
    local found
    if not facts then
        found = 'is gone'
    elseif is_lower(facts['last-generated-id'], place) then
        found = 'was created again: its last id is ' .. facts['last-generated-id']
    elseif AFTER == 'trim' and facts.groups > 0 then
        return {'refused', 'the stream ' .. source .. ' has consumer groups, and '
            .. 'source.after_commit = "trim" would remove entries that they have not read. Set '
            .. '"keep" or "delete", or remove the groups (XGROUP DESTROY)'}
    else
        return nil
    end
    return {'refused', 'the stream ' .. source .. ' ' .. found .. ', and entries up to ' .. place
        .. ' were read before. New entries with lower ids would never be read. To read the present '
        .. 'stream from its first entry, run HDEL ' .. state .. ' cursor; or restore the old '
        .. 'stream with its ids'}
end

-- Returns the id of the last committed entry, and the number of entries ever added up to that
-- entry. The number is nil if no run has counted.
local function stream_place(state)
    local found = redis.call('HMGET', state, 'cursor', 'entries')
    if not found[1] then
        return '0-0', nil
    end
    return found[1], tonumber(found[2])
end

-- Returns the number of entries after a place, and true if the number is exact. Otherwise the
-- number may be too high, because deleted entries count. Redis 7 counts all entries ever added.
local function stream_left(facts, place, entries)
    local first, last = facts['first-entry'], facts['last-entry']
    if not last or not is_lower(place, last[1]) then
        return 0, true
    elseif is_lower(place, first[1]) then
        return facts.length, true
    end
    local added = facts['entries-added']
    local left = added and entries and added - entries or facts.length
    return math.max(1, math.min(left, facts.length)), false
end

local function source_waiting(state, keys)
    local facts = stream_facts(keys[1])
    if not facts then
        return 0
    end
    return (stream_left(facts, stream_place(state)))
end
