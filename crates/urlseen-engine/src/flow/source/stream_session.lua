-- A Redis stream as source, around a run. Entries stay in the stream while they are read, so none
-- is claimed and none is given back.

local function source_own_refusal(keys)
    local source, processing = unpack(keys)
    local refusal = type_refusal(source, 'stream')
    if refusal then
        return refusal
    end
    -- The items were claimed by a crawl whose source was a list of this name.
    if redis.call('EXISTS', processing) == 1 then
        return {'refused', 'the key ' .. processing .. ' holds items that were claimed while '
            .. source .. ' was a list. Add these items to the stream and delete the key; or only '
            .. 'delete the key, if the items may be lost'}
    end
end

local function source_place(state, keys)
    return stream_place(state), 0
end

-- Also counts the lost entries: Redis has added them, no commit has read them, and they are no
-- longer in the stream, because another program deleted them. The new count of entries includes
-- them, so that each is reported once.
local function source_claim(state, keys, most, more)
    local source = keys[1]
    local place, known = stream_place(state)
    local facts = stream_facts(source)
    if not facts and place == '0-0' then
        return nil, place, 0, 0
    end
    local refusal = stream_refusal(source, state, facts, place)
    if refusal then
        return refusal
    end
    local added, lost = facts['entries-added'], 0
    -- Entries that were deleted before the start of the crawl are not lost.
    local entries = known or added and added - facts.length
    local left, is_exact = stream_left(facts, place, entries)
    if added then
        local counted = is_exact and added - left or entries
        lost = math.max(0, counted - entries)
        if counted ~= known then
            redis.call('HSET', state, 'cursor', place, 'entries', string.format('%.0f', counted))
        end
    end
    return nil, place, left, lost
end

local function source_give_back_refusal(keys)
    return nil
end

local function source_give_back(keys, most)
    return 0, 0
end
