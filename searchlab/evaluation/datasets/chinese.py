"""Flickr8k with Chinese texts: what queries in the language of the texts find, if not English."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Final

from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.external import external_folder, flickr8k
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.datasets.rows import read_rows
from searchlab.evaluation.datasets.written import rewrite
from searchlab.photos.photo import photo_id_of

_LISTED = (
    "狗 小狗 马 鸟 孩子 婴儿 男孩 女孩 男人 女人 人群 球员 球 足球 "
    "篮球 网球 吉他 相机 雨伞 旗 气球 秋千 滑梯 自行车 摩托车 汽车 卡车 公交车 "
    "火车 船 皮划艇 冲浪板 滑板 滑雪板 椅子 桌子 沙发 床 窗户 门 楼梯 栏杆 "
    "桥 建筑 房子 雕像 喷泉 街道 马路 人行道 公园 操场 海滩 沙滩 海 海浪 "
    "湖 河 瀑布 泳池 水 冰 雪 沙子 泥 草地 草 山 悬崖 岩石 "
    "石头 森林 树 花 树叶 木头 树枝 天空 日落 云 火 烟 泡泡 食物 "
    "蛋糕 杯子 书 报纸 帐篷 帽子 头盔 手套 衬衫 夹克 外套 裙子 裤子 短裤 "
    "鞋 背包 墨镜 眼镜 比赛 婚礼 音乐 棍子 飞盘 跑步 跳舞 游泳 笑 雪橇 "
    "攀岩 骑手 警察"
)
WORDS: Final = tuple(_LISTED.split())
"""Plain Chinese words for what is seen in everyday photos."""


def flickr8k_described_zh() -> Dataset:
    """Load the Chinese queries of `flickr8k`, with a Chinese caption of each photo as description.

    The description is the photo's first caption that people wrote and that no query is.
    """
    base, name = flickr8k(), "flickr8k-described-zh"
    queries = [query for query in base.queries if query.lang == "zh"]
    qrels = {query.query_id: base.qrels[query.query_id] for query in queries}
    texts = {photo_id: {"source_description": said[0]} for photo_id, said in _captions().items()}
    return rewrite(base.derive(name, queries, qrels), name, texts)


def flickr8k_words_described_zh() -> Dataset:
    """Load the test photos with plain Chinese words, and the texts of `flickr8k-described-zh`.

    The grade of a photo is how many of its other captions have the word; none of them is a text.
    """
    base, name = flickr8k(), "flickr8k-words-described-zh"
    queries, qrels = [], {}
    for number, word in enumerate(WORDS):
        counts = {
            p: sum(word in said for said in others) for p, (_, *others) in _captions().items()
        }
        if any(counts.values()):
            queries.append(LabelledQuery(f"zh-{number:03d}", "zh", "word", word))
            qrels[f"zh-{number:03d}"] = {photo: n for photo, n in counts.items() if n}
    texts = {photo_id: {"source_description": said[0]} for photo_id, said in _captions().items()}
    return rewrite(base.derive(name, queries, qrels), name, texts)


@lru_cache(maxsize=1)
def _captions() -> dict[str, list[str]]:
    """Return the Chinese captions that people wrote for each test photo; queries are none."""
    base, folder = flickr8k(), external_folder("flickr8k")
    asked = {row["judged_as"] for row in read_rows(folder / "graded_queries.tsv")}
    by_photo: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in read_rows(folder / "captions.tsv"):
        photo_id = photo_id_of("flickr", row["photo_id"])
        is_written = row["lang"] == "zh" and row["kind"] == "written"
        if is_written and row["caption_id"] not in asked and photo_id in base.photo_ids:
            by_photo[photo_id].append((int(row["idx"]), row["text"]))
    return {photo_id: [text for _, text in sorted(said)] for photo_id, said in by_photo.items()}
