-- Judges items by layers of bits that grow, as redis-lua-scaling-bloom-filter does. The keys are
-- the count of items and the layers; the extras are the texts, one for each item, empty where an
-- item goes on unchecked. LAYERS has for each layer its bits, its hashes, and how many items it and
-- those before it are made for.

-- Bits of an old layer that are looked at first: nearly all that are not in it lack one of them.
local FEW = 4

-- The layer that the item of this number belongs to.
local function layer_of(number)
    for layer = 1, #LAYERS do
        if number <= LAYERS[layer][3] then
            return layer
        end
    end
    error('urlseen: the filter has as many items as its last layer can take, which Redis bounds: '
        .. 'make one of a larger filter.capacity under another filter.key')
end

local function filter_refusal(keys)
    local refusal = permission_refusal('INCRBY', keys[1], '1')
    for number = 2, #keys do
        refusal = refusal or permission_refusal('BITFIELD', keys[number], 'SET', 'u1', '0', '1')
    end
    return refusal
end

-- What the positions of a text come from: four words.
local function words(text)
    local digest, found = redis.sha1hex(text), {}
    for word = 0, 3 do
        found[word] = tonumber(string.sub(digest, 8 * word + 1, 8 * word + 8), 16)
    end
    return found
end

local function positions(hash, layer)
    local bits, found = LAYERS[layer][1], {}
    for i = 1, LAYERS[layer][2] do
        found[i] = (hash[i % 2] + i * hash[2 + (i + i % 2) % 4 / 2]) % bits
    end
    return found
end

-- Notes in `is_set` which of these bits of a layer are set.
local function read(key, bits, is_set)
    local most = math.floor(CHUNK / 3)
    for from = 1, #bits, most do
        local ask = {}
        for at = from, math.min(from + most - 1, #bits) do
            local count = #ask
            ask[count + 1], ask[count + 2], ask[count + 3] = 'GET', 'u1', bits[at]
        end
        local values = redis.call('BITFIELD_RO', key, unpack(ask))
        for index = 1, #values do
            if values[index] == 1 then
                is_set[bits[from + index - 1]] = true
            end
        end
    end
end

local function has_all(found, is_set, last)
    for index = 1, last do
        if not is_set[found[index]] then
            return false
        end
    end
    return true
end

-- Reads of each layer what tells whether the items are in it. Of one that is written to by now all
-- bits are read, as an item of this call may set those of another.
local function look(keys, hashes, oldest_open, newest)
    local is_set, found = {}, {}
    for layer = 1, newest do
        local set, all, first, rest = {}, {}, {}, {}
        local few = math.min(FEW, LAYERS[layer][2])
        for item, hash in pairs(hashes) do
            all[item] = positions(hash, layer)
            for index = 1, layer < oldest_open and few or #all[item] do
                first[#first + 1] = all[item][index]
            end
        end
        read(keys[layer + 1], first, set)
        for _, bits in pairs(all) do
            if layer < oldest_open and has_all(bits, set, few) then
                for index = few + 1, #bits do
                    rest[#rest + 1] = bits[index]
                end
            end
        end
        read(keys[layer + 1], rest, set)
        is_set[layer], found[layer] = set, all
    end
    return is_set, found
end

-- Judges the arguments from `first` to `last`. Answers those that go on, how many of them are
-- unseen, and what remembers those. Each item is judged as if those before it had been remembered
-- already.
local function judge(keys, _, first, last, first_extra)
    local text = redis.call('GET', keys[1]) or '0'
    local count = string.match(text, '^%d+$') and tonumber(text)
    if not count then
        error('urlseen: ' .. keys[1] .. ' is no count of items: ' .. text)
    end
    local hashes, asked = {}, 0
    for index = 0, last - first do
        if ARGV[first_extra + index] ~= '' then
            hashes[index], asked = words(ARGV[first_extra + index]), asked + 1
        end
    end
    local open = layer_of(count + 1)
    local is_set, found = look(keys, hashes, open, open)
    local onward, writes, added = {}, {}, 0
    for index = 0, last - first do
        local is_unseen = false
        if hashes[index] then
            local newest = layer_of(count + added + 1)
            if newest > #is_set then
                -- Nothing is in it yet.
                is_set[newest], found[newest] = {}, {}
            end
            is_unseen = true
            for layer = 1, newest do
                local bits = found[layer][index] or positions(hashes[index], layer)
                found[layer][index] = bits
                if has_all(bits, is_set[layer], #bits) then
                    is_unseen = false
                    break
                end
            end
            if is_unseen then
                added = added + 1
                local write = writes[newest] or {}
                writes[newest] = write
                for _, bit in ipairs(found[newest][index]) do
                    if not is_set[newest][bit] then
                        is_set[newest][bit] = true
                        local so_far = #write
                        write[so_far + 1], write[so_far + 2] = 'SET', 'u1'
                        write[so_far + 3], write[so_far + 4] = bit, '1'
                    end
                end
            end
        end
        if is_unseen or not hashes[index] then
            onward[#onward + 1] = ARGV[first + index]
        end
    end
    return onward, added, function()
        local most = CHUNK - CHUNK % 4
        for layer, write in pairs(writes) do
            for from = 1, #write, most do
                local to = math.min(from + most - 1, #write)
                redis.call('BITFIELD', keys[layer + 1], unpack(write, from, to))
            end
        end
        if added > 0 then
            redis.call('INCRBY', keys[1], added)
        end
    end
end
