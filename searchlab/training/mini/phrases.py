"""Short phrases for what happens in a photo, which no name of a thing can express.

They are written by hand, so that each reads well in a generated description. The model decides
which of them fits a photo; `benchmarks/descriptions/bench_descriptions.py` measures how often it is
right.
"""

from __future__ import annotations

PHRASES = (
    # People at rest and on their way.
    "a group of people", "a crowd of people", "a person standing", "people sitting together",
    "a man and a woman", "a couple embracing", "two people talking", "two men standing",
    "two women smiling", "a smiling woman", "a smiling man", "a smiling child", "a baby",
    "a young boy", "a young girl", "two children", "a group of children", "an elderly man",
    "an elderly woman", "a person's face", "people posing for a photo", "a person walking",
    "people walking down a street", "a person crossing a street", "people waiting",
    "a person sitting on a bench", "a person sleeping", "a person lying on grass",
    "a person sitting on steps", "a man sitting in a chair", "a woman holding a baby",
    "a person holding an umbrella", "a person carrying a bag", "people dancing",
    "a person singing into a microphone", "a band playing music", "a person playing the guitar",
    "a person playing the drums", "a person taking a photo", "a person reading",
    "a person talking on the phone", "a person working at a computer", "a person smoking",
    "people eating at a table", "people drinking", "a person cooking", "a birthday party",
    "a wedding", "a parade", "people in costumes", "people protesting", "a person in uniform",
    "a street performer", "an artist painting", "a person selling goods at a market",
    "workers at a construction site", "people shopping", "a person wearing a hat",
    "a person wearing sunglasses", "a person with a backpack", "people in a kitchen",
    "people in a restaurant", "people at night in a city",
    # Play and sport.
    "children playing", "a child on a swing", "a child on a slide", "a child jumping",
    "a child running", "a child in a swimming pool", "a child playing in water",
    "a child playing in sand", "a child riding a bicycle", "a child with a toy",
    "a child blowing bubbles", "a child eating", "people playing soccer",
    "people playing basketball", "people playing football", "people playing baseball",
    "people playing volleyball", "people playing tennis", "people playing hockey",
    "people playing rugby", "runners in a race", "a person jogging", "a person jumping",
    "a person doing a flip", "a gymnast", "a person practising martial arts", "boxers fighting",
    "a person riding a bicycle", "a cyclist in a race", "a person on a mountain bike",
    "a bicycle jump", "a person riding a motorcycle", "a motocross rider in the air",
    "a skateboarder doing a trick", "a person on roller skates", "a person skiing",
    "a snowboarder in the air", "a person sledding", "people hiking in the mountains",
    "a person climbing a rock", "a person on top of a mountain", "people camping",
    "a person surfing a wave", "a person on a wakeboard", "a person swimming",
    "a person diving into water", "people in a boat", "a person in a kayak", "people rafting",
    "a person fishing", "people on the beach", "people walking along the beach",
    "a person riding a horse", "a rodeo", "a race car", "cars in traffic", "a person driving",
    # Animals.
    "a dog running", "a dog running on grass", "a dog running through snow",
    "a dog running on the beach", "a dog jumping", "a dog jumping over an obstacle",
    "a dog catching a frisbee", "a dog with a ball in its mouth", "a dog with a stick in its mouth",
    "a dog swimming", "a dog shaking off water", "a dog sitting", "a dog lying down",
    "a dog on a leash", "a dog looking at the camera", "a puppy", "two dogs playing",
    "two dogs running", "two dogs fighting", "a group of dogs", "a dog race", "a black dog",
    "a white dog", "a brown dog", "a cat lying down", "a cat looking at the camera", "a kitten",
    "a bird in flight", "a bird on a branch", "birds on water", "a horse in a field",
    "cows grazing", "sheep in a field", "an elephant", "a monkey", "an insect on a flower",
    "a butterfly", "fish under water", "a reptile",
    # Places and things.
    "a mountain landscape", "a snowy mountain", "a snowy landscape", "a forest",
    "a path through a forest", "a field of grass", "a field of flowers", "a garden", "a tree",
    "autumn leaves", "a desert", "a rocky coast", "an empty beach", "waves breaking on the shore",
    "the sea", "a lake", "a river", "a waterfall", "a bridge", "a sunset", "a sunrise",
    "a cloudy sky", "a starry sky", "lightning", "fog", "rain", "fireworks", "a campfire",
    "a city skyline", "a city street", "a street at night", "an old building", "a church",
    "a castle", "a house", "a tower", "a lighthouse", "a statue", "a fountain", "a park",
    "a playground", "a farm", "a harbour with boats", "a sailing boat", "a ship", "an airplane",
    "a train", "a bus", "a truck", "a parked car", "a road through the countryside",
    "a graffiti wall",
    "a sign with text", "a living room", "a bedroom", "a kitchen", "an office",
    "a stage with lights",
    "a stadium", "a shop", "food on a plate", "fresh fruit", "vegetables", "a cake", "bread",
    "a cup of coffee", "a glass of wine", "flowers in a vase", "a close-up of a flower",
    "an abstract pattern", "a wall", "a window", "books", "tools", "a musical instrument", "a toy",
)  # fmt: skip
