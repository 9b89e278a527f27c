-- A Redis stream as source. A place is the id of the last committed entry. FIELD is the field with
-- the item. AFTER ('keep', 'delete' or 'trim') is the treatment of committed entries.

-- Returns true if one id of an entry is lower than another. Numbers in Lua have 53 bits, so digits
-- are compared.
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

-- Answers what Redis tells of the stream, by name; nothing if there is none.
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

-- Refuses unless the stream has generated the id `place`: entries that it will make may have lower
-- ones, which nothing would read. Refuses to trim what consumer groups have not read.
local function stream_refusal(source, state, facts, place)
    local found
    if not facts then
        found = 'is gone'
    elseif is_lower(facts['last-generated-id'], place) then
        found = 'was made anew: its last id is ' .. facts['last-generated-id']
    elseif AFTER == 'trim' and facts.groups > 0 then
        return {'refused', 'the stream ' .. source .. ' has consumer groups, and '
            .. 'source.after_commit = "trim" would remove entries that they have not read. Set '
            .. '"keep" or "delete", or remove the groups (XGROUP DESTROY)'}
    else
        return nil
    end
    return {'refused', 'the stream ' .. source .. ' ' .. found .. ', and entries up to ' .. place
        .. ' were read from it: new ones with lower ids would never be read. To read what is '
        .. 'there from the first entry on, run HDEL ' .. state .. ' cursor; or bring the stream '
        .. 'back, with its ids'}
end

-- Answers the id of the last entry committed, and how many entries there ever were up to it;
-- nothing in place of the number where no run has counted.
local function stream_place(state)
    local found = redis.call('HMGET', state, 'cursor', 'entries')
    if not found[1] then
        return '0-0', nil
    end
    return found[1], tonumber(found[2])
end

-- Answers how many entries there are after a place, of at least as many as there are, and whether
-- the number is exact. Redis 7 counts the entries that it ever added.
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
