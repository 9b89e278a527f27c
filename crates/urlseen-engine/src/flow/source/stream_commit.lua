-- The commit of a batch of entries. A span is the id of the last entry of the batch, the number of
-- entries, and ids for AFTER: all ids of the batch for 'delete', the first id to keep for 'trim'.
-- The mark of an item is the id of its entry.

-- Rules S1 and S2 are checked here, in the step that moves the cursor.
local function source_refusal(claimed, state, before, span, oversize, rejects)
    local place = stream_place(state)
    if place ~= before then
        return {'source', 'the cursor of the stream ' .. claimed .. ': it is ' .. place .. ' now'}
    end
    return stream_refusal(claimed, state, stream_facts(claimed), string.match(span, '^%S+'))
        or AFTER == 'delete' and permission_refusal('XDEL', claimed, '0-0')
        or AFTER == 'trim' and permission_refusal('XTRIM', claimed, 'MINID', '0-0')
        or rejects > 0 and permission_refusal('XRANGE', claimed, '-', '+')
        or nil
end

-- Returns the item of an entry, or '' if the entry is gone or has no item.
local function item_of(claimed, id)
    local entry = redis.call('XRANGE', claimed, id, id)[1]
    local fields = entry and entry[2] or {}
    for index = 1, #fields, 2 do
        if fields[index] == FIELD then
            return fields[index + 1]
        end
    end
    return ''
end

local function source_commit(claimed, state, span, oversize, first)
    local words = {}
    for word in string.gmatch(span, '%S+') do
        words[#words + 1] = word
    end
    for index = first, #ARGV, 2 do
        redis.call('RPUSH', oversize, ARGV[index + 1], item_of(claimed, ARGV[index]))
    end
    local _, entries = stream_place(state)
    redis.call(
        'HSET', state, 'cursor', words[1],
        'entries', string.format('%.0f', (entries or 0) + words[2]))
    if AFTER == 'delete' then
        for from = 3, #words, CHUNK do
            redis.call('XDEL', claimed, unpack(words, from, math.min(from + CHUNK - 1, #words)))
        end
    elseif AFTER == 'trim' then
        redis.call('XTRIM', claimed, 'MINID', words[3])
    end
end
