"""Things that most photo libraries show, and their names in several languages."""

from __future__ import annotations

from typing import Final

_LANGUAGES = ("ar", "cs", "de", "fr", "zh", "es", "it", "pt", "ru", "ja")
_NAMES = {
    "a dog": "كلب|pes|ein Hund|un chien|狗|un perro|un cane|um cachorro|собака|犬",
    "a bird": "طائر|pták|ein Vogel|un oiseau|鸟|un pájaro|un uccello|um pássaro|птица|鳥",
    "a horse": "حصان|kůň|ein Pferd|un cheval|马|un caballo|un cavallo|um cavalo|лошадь|馬",
    "a child": "طفل|dítě|ein Kind|un enfant|孩子|un niño|un bambino|uma criança|ребёнок|子供",
    "a man": "رجل|muž|ein Mann|un homme|男人|un hombre|un uomo|um homem|мужчина|男性",
    "a woman": "امرأة|žena|eine Frau|une femme|女人|una mujer|una donna|uma mulher|женщина|女性",
    "a car": "سيارة|auto|ein Auto|une voiture|汽车|un coche|un'auto|um carro|автомобиль|車",
    "a bicycle": "دراجة|kolo|ein Fahrrad|un vélo|自行车|una bicicleta|una bicicletta|"
    "uma bicicleta|велосипед|自転車",
    "a boat": "قارب|loď|ein Boot|un bateau|船|un barco|una barca|um barco|лодка|ボート",
    "snow": "ثلج|sníh|Schnee|neige|雪|nieve|neve|neve|снег|雪",
    "the beach": "شاطئ|pláž|der Strand|la plage|海滩|la playa|la spiaggia|a praia|пляж|ビーチ",
    "a mountain": "جبل|hora|ein Berg|une montagne|山|una montaña|una montagna|uma montanha|гора|山",
    "a ball": "كرة|míč|ein Ball|une balle|球|una pelota|una palla|uma bola|мяч|ボール",
    "a street": "شارع|ulice|eine Straße|une rue|街道|una calle|una strada|uma rua|улица|通り",
    "grass": "عشب|tráva|Gras|herbe|草|hierba|erba|grama|трава|草",
    "water": "ماء|voda|Wasser|eau|水|agua|acqua|água|вода|水",
}
CONCEPTS: Final = {
    english: dict(zip(_LANGUAGES, names.split("|"), strict=True))
    for english, names in _NAMES.items()
}
"""English name -> language -> name."""
