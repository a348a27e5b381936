"""Function words: the short ones that stand in nearly every sentence of a language.

They tell the language of a text, and say nothing of what a photo shows.
"""

from __future__ import annotations

from typing import Final

# Order counts: the first one wins a tie, and the numbers of languages on disk are places in here.
FUNCTION_WORDS: Final = {
    "english": (
        "a an the of and or in on at to for with from by is are was were be it its this that as "
        "into near over under behind between s two three his her their he she they while "
        "through next top"
    ),
    "german": (
        "der die das den dem des ein eine einer eines einem einen und oder in im am an auf mit "
        "von vom zu zum zur bei aus ist sind nicht für über unter vor nach sich es er sie auch "
        "wie zwei ihre ihren sein seine durch neben"
    ),
    "french": (
        "le la les l un une des du de d et ou à au aux en dans sur avec pour par est sont qui "
        "que ne pas son sa ses ce cette il elle sous entre deux près devant vers"
    ),
    "spanish": (
        "el la los las un una unos unas de del y o en con por para al es son que se su sus no "
        "lo como sobre entre dos está están junto"
    ),
    "italian": (
        "il lo la i gli le un uno una di del della dei delle dello degli e o in nel nella con "
        "su sul sulla per da al alla è sono che si non suo sua due tra mentre"
    ),
    "portuguese": (
        "o a os as um uma uns umas de do da dos das e ou em no na nos nas com por para ao à é "
        "são que se não seu sua sobre dois duas está perto entre"
    ),
    "dutch": (
        "de het een van en of in op met voor bij aan uit is zijn niet naar door over onder "
        "tussen die dat hij zij haar ze twee langs naast wordt"
    ),
    "swedish": (
        "en ett och eller i på med av för till från är som den det de inte vid under över sin "
        "sitt mellan två bredvid står"
    ),
    "danish": (
        "en et og eller i på med af for til fra er som den det de ikke ved under over sin sit "
        "mellem to ved siden står"
    ),
    "norwegian": (
        "en ei et og eller i på med av for til fra er som den det de ikke ved under over sin "
        "sitt mellom to står"
    ),
    "finnish": (
        "ja tai on ei se ne joka jossa kanssa sekä myös kuin hän ovat oli kaksi päällä edessä "
        "vieressä"
    ),
    "polish": (
        "i w we z ze na do od po za nad pod przed przy dla jest są nie się to ten ta te jego "
        "jej oraz lub dwa dwie obok"
    ),
    "czech": (
        "a i v ve s se na do od po za nad pod před při pro je jsou není ten ta to jeho její "
        "nebo k ke u z ze dva dvě vedle"
    ),
    "hungarian": (
        "a az egy és vagy van nem hogy is mint ez közben mellett előtt két alatt fölött között"
    ),
    "romanian": (
        "un o și sau în pe cu de la din pentru este sunt nu care al ale lui ei lângă sub doi două"
    ),
    "turkish": (
        "bir ve veya bu şu ile için de da çok olan üzerinde altında iki gibi yanında içinde"
    ),
    "indonesian": (
        "dan atau di ke dari yang ini itu dengan untuk pada adalah tidak dalam sebuah seorang "
        "dua sedang oleh para"
    ),
    "lithuanian": "ir ar yra su į iš ant prie po nuo už per kad tai du dvi šalia kuris",
    "estonian": "ja või on ei see need mis kes koos ka kui oma kaks juures peal ees",
    "catalan": (
        "el la els les un una uns unes de del i o en amb per al és són que se no sobre dos dues"
    ),
    "irish": "an na agus nó i ar le ag do de is tá seo sin dhá",
    "basque": "eta edo bat da dira ez hau hori bi ere duen dago",
    "serbian": "i ili u na sa od do za je su nije se ovaj taj dva pored koji",
    "esperanto": "la kaj aŭ en sur kun de al por estas ne kiu tiu du apud",
    "greek": (
        "ο η το οι τα του της των και ή σε με από για στο στη στην στον είναι δεν που ένα ένας "
        "μια δύο"
    ),
    "russian": (
        "и в во на с со к по за из от до у о не это что как для под над при его её их или он "
        "она они два две стоит"
    ),
    "arabic": "في من على إلى عن مع و أو هو هي هذا هذه التي الذي لا ما",
    "persian": "در از به با و یا که این آن را است یک برای بر هم",
    "hindi": "का की के में है हैं और या पर से को एक यह वह नहीं ने हुए",
    "nepali": "को मा छ छन् र वा एक यो त्यो बाट लाई गर्दै",
    "tamil": "ஒரு மற்றும் இந்த அந்த உள்ள என்று மீது",
    "armenian": "և ու է են մի այս այն մեջ վրա հետ",
}
"""Language, by Snowball's names -> its function words, with accents, in lower case."""
